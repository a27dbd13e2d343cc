//! Worlds of small guests, and what is done to their nodes at which vtime.

use everett_fault::{Distribution, Ppm};
use everett_snapshot::Pool;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::machine::Moment;
use everett_vmm::wire::WireConfig;
use everett_vmm::world::{World, WorldMoment, WorldStop, WorldUntil};
use everett_vmm::{Machine, Stop};

use crate::card::{BROADCAST, Script, frame, mac, node};
use crate::worker::worker;

pub(crate) type Soft = World<SoftEngine>;

/// A microsecond, in nanoseconds.
pub(crate) const US: u64 = 1_000;
/// A millisecond.
pub(crate) const MS: u64 = 1_000 * US;

/// A world of these nodes on the default wire.
pub(crate) fn world(machines: Vec<Machine<SoftEngine>>) -> Soft {
    World::new(machines, WireConfig::default(), 7).unwrap()
}

/// A worker that sends to `to`.
pub(crate) fn working(number: u8, sleeps: bool, to: [u8; 6]) -> Machine<SoftEngine> {
    node(number, &worker(sleeps), &Script::driver(&frame(to, mac(number), 60)))
}

/// Two workers that send to each other, one of which never sleeps, and one that sends to all.
pub(crate) fn trio() -> Vec<Machine<SoftEngine>> {
    vec![working(0, true, mac(1)), working(1, false, mac(0)), working(2, true, BROADCAST)]
}

/// Up to a vtime.
fn until(vtime: u64) -> WorldUntil<'static> {
    WorldUntil { vtime, port_lines: 0, node: 0, icount: u64::MAX, breakpoints: &[] }
}

/// Run to a vtime. Nodes may come to their ends.
pub(crate) fn run(world: &mut Soft, vtime: u64) {
    while let WorldStop::Node { stop, node } = world.run(&until(vtime)) {
        assert!(matches!(&stop, Stop::End(end) if !end.is_failure()), "node {node}: {stop:?}");
    }
}

/// What is done to a node.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Pause,
    Resume,
    Speed(Ppm),
    Drift(i32),
    Stalls(Option<(u64, Distribution)>),
    Off,
    /// It is brought to its first moment and switched on.
    On,
}

/// What is done when, to which node: ascending.
pub(crate) type Plan = Vec<(u64, usize, Act)>;

/// A world that goes by a plan.
pub(crate) struct Course {
    pub(crate) world: Soft,
    plan: Plan,
    done: usize,
    first: Vec<Moment>,
}

impl Course {
    /// A world of these machines, which are as they were switched on.
    pub(crate) fn new(mut machines: Vec<Machine<SoftEngine>>, plan: Plan) -> Course {
        let pool = Pool::default();
        let first = machines.iter_mut().map(|machine| machine.moment(&pool)).collect();
        Course { world: world(machines), plan, done: 0, first }
    }

    /// When something is done next.
    fn event(&self) -> u64 {
        self.plan.get(self.done).map_or(u64::MAX, |(at, ..)| *at)
    }

    /// Run to a vtime, and do what is planned until then.
    pub(crate) fn run(&mut self, vtime: u64) {
        while self.world.vtime() < vtime {
            let event = self.event();
            run(&mut self.world, vtime.min(event));
            let now = self.world.vtime();
            while let Some((_, node, act)) = self.plan.get(self.done).filter(|(at, ..)| *at == now).cloned() {
                self.done += 1;
                self.act(node, act);
            }
        }
    }

    /// Run so many instructions of a node further, if that is before `vtime` and before anything is done.
    pub(crate) fn step(&mut self, node: usize, instructions: u64, vtime: u64) {
        let icount = self.world.nodes()[node].retired() + instructions;
        let event = self.event();
        self.world.run(&WorldUntil { node, icount, ..until(vtime.min(event)) });
    }

    pub(crate) fn act(&mut self, node: usize, act: Act) {
        let world = &mut self.world;
        match act {
            Act::Pause => world.pause(node),
            Act::Resume => world.resume(node),
            Act::Speed(ppm) => world.set_speed(node, ppm),
            Act::Drift(ppm) => world.drift(node, ppm),
            Act::Stalls(stalls) => world.set_stalls(node, stalls),
            Act::Off => world.power_off(node),
            Act::On => {
                world.node_mut(node).machine_mut().restore(&self.first[node]).unwrap();
                world.power_on(node);
            }
        }
    }

    /// Go on from a moment in a world of machines that were just made.
    pub(crate) fn reborn(&mut self, moment: &WorldMoment, mut machines: Vec<Machine<SoftEngine>>) {
        for (machine, then) in machines.iter_mut().zip(&moment.machines) {
            machine.restore(then).unwrap();
        }
        self.world = World::from_moment(machines, moment).unwrap();
    }
}

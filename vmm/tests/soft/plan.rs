//! Worlds of small guests, and plans of actions on their nodes.

use everett_fault::{Distribution, Ppm};
use everett_snapshot::Pool;
use everett_streams::BootSeed;
use everett_vmm::machine::Moment;
use everett_vmm::wire::WireConfig;
use everett_vmm::world::{World, WorldMoment, WorldStop, WorldUntil};
use everett_vmm::{Machine, Stop};

use crate::card::{BROADCAST, Script, frame, mac, node};
use crate::worker::worker;

/// One microsecond, in nanoseconds.
pub(crate) const US: u64 = 1_000;
/// One millisecond, in nanoseconds.
pub(crate) const MS: u64 = 1_000 * US;

/// Returns a world of these nodes on the default wire.
pub(crate) fn world(machines: Vec<Machine>) -> World {
    World::new(machines, WireConfig::default(), BootSeed::new(7)).unwrap()
}

/// Returns a node with the guest [`worker`], which sends frames to the address `to`.
pub(crate) fn working(number: u8, sleeps: bool, to: [u8; 6]) -> Machine {
    node(number, &worker(sleeps), &Script::driver(&frame(to, mac(number), 60)))
}

/// Returns three nodes with the guest [`worker`]. The first two send to each other, the second without sleeping. The
/// third broadcasts.
pub(crate) fn trio() -> Vec<Machine> {
    vec![working(0, true, mac(1)), working(1, false, mac(0)), working(2, true, BROADCAST)]
}

/// Returns the condition to run to a vtime.
fn until(vtime: u64) -> WorldUntil {
    WorldUntil { vtime, port_lines: 0, node: 0, icount: u64::MAX }
}

/// Runs to a vtime. Nodes may end before that.
pub(crate) fn run(world: &mut World, vtime: u64) {
    run_counted(world, vtime, &mut |_, node| panic!("node {node} stopped at a count"));
}

/// Runs to a vtime, and calls `counted` with each node that stops at its count. Nodes may end before that.
fn run_counted(world: &mut World, vtime: u64, counted: &mut dyn FnMut(&mut World, usize)) {
    while let WorldStop::Node { stop, node } = world.run(&until(vtime)) {
        match stop {
            Stop::Count => counted(world, node),
            stop => assert!(matches!(&stop, Stop::End(end) if !end.is_failure()), "node {node}: {stop:?}"),
        }
    }
}

/// Action on a node.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Pause,
    Resume,
    Speed(Ppm),
    Drift(i32),
    Stalls(Option<(u64, Distribution)>),
    Off,
    /// The node restarts from the state that it had when the [`Course`] began.
    On,
}

/// Actions, each with its vtime and node, in ascending order of vtime.
pub(crate) type Plan = Vec<(u64, usize, Act)>;

/// A world in which a plan of actions runs.
pub(crate) struct Course {
    pub(crate) world: World,
    plan: Plan,
    done: usize,
    first: Vec<Moment>,
}

impl Course {
    /// Creates a world of these machines for `plan`. Stores the machines' present states for [`Act::On`].
    pub(crate) fn new(mut machines: Vec<Machine>, plan: Plan) -> Course {
        let pool = Pool::default();
        let first = machines.iter_mut().map(|machine| machine.moment(&pool)).collect();
        Course { world: world(machines), plan, done: 0, first }
    }

    /// Returns the vtime of the next action.
    fn event(&self) -> u64 {
        self.plan.get(self.done).map_or(u64::MAX, |(at, ..)| *at)
    }

    /// Runs to a vtime, and executes the plan's actions up to then.
    pub(crate) fn run(&mut self, vtime: u64) {
        self.run_counted(vtime, &mut |_, node| panic!("node {node} stopped at a count"));
    }

    /// Like [`Course::run`], and calls `counted` with each node that stops at its count.
    pub(crate) fn run_counted(&mut self, vtime: u64, counted: &mut dyn FnMut(&mut World, usize)) {
        while self.world.vtime() < vtime {
            let event = self.event();
            run_counted(&mut self.world, vtime.min(event), counted);
            let now = self.world.vtime();
            while let Some((_, node, act)) = self.plan.get(self.done).filter(|(at, ..)| *at == now).cloned() {
                self.done += 1;
                self.act(node, act);
            }
        }
    }

    /// Runs a node for `instructions` more instructions, unless `vtime` or an action comes first.
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

    /// Replaces the world by a world of new machines that continues from `moment`.
    pub(crate) fn reborn(&mut self, moment: &WorldMoment, mut machines: Vec<Machine>) {
        for (machine, then) in machines.iter_mut().zip(&moment.machines) {
            machine.restore(then).unwrap();
        }
        self.world = World::from_moment(machines, moment).unwrap();
    }
}

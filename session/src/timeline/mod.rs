//! A world with the host's end of its conversations: what a guest says is answered where it was said.
//!
//! The host acts at two kinds of places: at a node, after the instruction with which its guest ended a line on its control
//! port; and at vtimes that were fixed before, when the whole world is there. Both are functions of the timeline, so however
//! a run is cut into calls of [`Timeline::run`], it is the same run. It acts when the world is about to go on from such a
//! place, never when it arrives: a timeline that is stored there ([`state`]) and goes on elsewhere does what this one does.
//!
//! * here: running, listening, acting;
//! * `director`: what concerns all nodes: from *ready* over the workload to the checks;
//! * `commands`: those of a test template;
//! * `faults`: what a fault plan does to the world;
//! * `fork`: becoming a child of a moment;
//! * `boot`: running up to the restart points or to *ready*, and beginning under a seed;
//! * `talk`: checks that the host makes itself, over the wire;
//! * `telling`: events, in an order that no cut changes;
//! * [`state`]: what is kept of a timeline when its world is stored.

mod boot;
mod commands;
mod director;
mod faults;
mod fork;
pub mod restart_point;
pub mod state;
mod streams;
mod talk;
mod telling;

use std::sync::Arc;

use everett_host::time::CpuClock;
use everett_protocol::{self as protocol, Exec, Exit, Port};
use everett_vmm::clock::VTIME_MAX;
use everett_vmm::divergence::bisect::Subject;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::machine::{Machine, Stop, Until};
use everett_vmm::world::{World, WorldStop, WorldUntil};
use everett_vmm::{Digest, Trail};

use super::agent_script::{Plan, WorldCheck};
use super::conversation::{Conversation, Phase};
use super::event::Event;
use super::node::NodeSession;
use super::watching::Watching;
use commands::Composing;
use state::Course;
use talk::Talk;
use telling::Telling;

pub use super::node::{BOOT_NS_MAX, UNSENT_BYTES_MAX};
pub use boot::{At, BegunAlready, BootError};
pub use director::CALM_NS_MAX;
pub use faults::{Faults, OtherPlan, Restarts};
pub use fork::ForkError;
pub use state::{SessionState, StateError};

/// Stop where an agent ends a line.
const CONTROL_LINES: u8 = 1 << Port::Control as u8;
/// The name under which the output of a command appears.
pub const COMMAND: &str = "command";

/// A world and its conversations.
pub struct Timeline {
    world: World<AnyEngine>,
    nodes: Vec<NodeSession>,
    /// The world's checks, in their order.
    checks: Vec<WorldCheck>,
    /// The host's conversation of a check that it makes.
    talk: Option<Talk>,
    /// The machines' disks before this one are no data disks.
    first_data_disk: usize,
    faults: Option<Faults>,
    course: Course,
    /// What follows from the state of the test template's commands.
    composing: Option<Composing>,
    telling: Telling,
    /// The workload's end comes when it is done, and has not come yet.
    until_done: bool,
    /// CPU time that the trail took, in nanoseconds: for figures.
    trail_cpu_ns: u64,
}

impl Timeline {
    /// A world of machines that have not executed anything yet, each with its plan. `checks` are the world's, in their order.
    #[must_use]
    pub fn new(world: World<AnyEngine>, plans: Vec<Plan>, checks: Vec<WorldCheck>) -> Timeline {
        let has_root = |plan: &Plan| !matches!(plan.mount.root, protocol::Root::None);
        let first_data_disk = usize::from(plans.first().is_some_and(has_root));
        let nodes = plans.into_iter().map(|plan| NodeSession::new(Conversation::new(plan))).collect();
        let (course, telling) = (Course::default(), Telling::default());
        Timeline {
            world,
            nodes,
            checks,
            talk: None,
            first_data_disk,
            faults: None,
            course,
            composing: None,
            telling,
            until_done: false,
            trail_cpu_ns: 0,
        }
    }

    /// `duration_ns` of vtime after *ready*, drivers stop and checks run.
    pub fn end_after(&mut self, duration_ns: u64) {
        self.course.duration_ns = Some(duration_ns);
        self.until_done = false;
    }

    /// Drivers stop and checks run when drivers, the commands of a test template and the fault plan are done, `most_ns` of vtime
    /// after *ready* at the latest.
    pub fn end_when_done(&mut self, most_ns: u64) {
        self.course.duration_ns = Some(most_ns);
        self.until_done = true;
    }

    /// How long the workload runs after *ready*, in nanoseconds of vtime, as far as that is known.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.course.duration_ns.unwrap_or(0)
    }

    /// Have accesses to bytes told as events. Nothing else changes.
    pub fn watch(&mut self, watching: &Arc<Watching>) {
        for (number, session) in self.nodes.iter_mut().enumerate() {
            session.watching = Some(Arc::clone(watching));
            self.world.node_mut(number).machine_mut().watch(watching.of_node(number));
        }
    }

    /// Run a command on the first node when the timeline has begun, and power that node off after it. Its output appears
    /// under [`COMMAND`].
    pub fn command_when_ready(&mut self, exec: Exec) {
        self.course.command = Some(exec);
    }

    /// Ask all guests to power off; where nobody answers, nothing happens.
    pub fn power_off(&mut self) {
        for (session, number) in self.nodes.iter_mut().zip(0..) {
            let node = self.world.node_mut(number);
            session.conversation.power_off(node.vtime());
            session.speak(node);
        }
    }

    /// How the command of [`Timeline::command_when_ready`] ended.
    #[must_use]
    pub fn command_exit(&self) -> Option<Exit> {
        self.nodes.first()?.conversation.command_exit()
    }

    /// How many findings there were.
    #[must_use]
    pub fn findings(&self) -> u64 {
        self.nodes.iter().map(|session| session.conversation.findings()).fold(0, u64::saturating_add)
    }

    /// The world, to look at.
    #[must_use]
    pub fn world(&self) -> &World<AnyEngine> {
        &self.world
    }

    /// The world, for digests and output.
    pub fn world_mut(&mut self) -> &mut World<AnyEngine> {
        &mut self.world
    }

    /// A node's machine, to look at.
    ///
    /// # Panics
    /// There is none of that number.
    #[must_use]
    pub fn machine(&self, node: usize) -> &Machine<AnyEngine> {
        self.world.nodes()[node].machine()
    }

    /// A node's machine, for its output.
    ///
    /// # Panics
    /// There is none of that number.
    pub fn machine_mut(&mut self, node: usize) -> &mut Machine<AnyEngine> {
        self.world.node_mut(node).machine_mut()
    }

    /// Nanoseconds of vtime: every node that runs has come to here.
    #[must_use]
    pub fn vtime(&self) -> u64 {
        self.world.vtime()
    }

    /// Instructions retired by all nodes.
    #[must_use]
    pub fn icount(&self) -> u64 {
        self.world.icount()
    }

    /// The digest of everything that decides what happens next, but for what the host says.
    pub fn digest(&mut self) -> Digest {
        self.world.digest()
    }

    /// The digests so far, at each multiple of 100 ms of vtime.
    #[must_use]
    pub fn trail(&self) -> &Trail {
        &self.course.trail
    }

    /// CPU time that digests of the trail have taken so far, in nanoseconds.
    #[must_use]
    pub fn trail_cpu_ns(&self) -> u64 {
        self.trail_cpu_ns
    }

    /// The world, without its conversations.
    #[must_use]
    pub fn into_world(self) -> World<AnyEngine> {
        self.world
    }

    /// What happened before the moment from which this timeline goes on, to be taken as if it had just been.
    pub fn events_again(&mut self, events: &[Event]) {
        self.telling.again(events);
    }

    /// Events since the last call, in the order of their vtimes. Of a world that goes on, what a node did while others had
    /// not come there waits.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.telling.take(self.all_told_before())
    }

    /// Nothing that happens from here on happens before this vtime.
    fn all_told_before(&self) -> u64 {
        let over = matches!(self.phase(), Phase::Done | Phase::Broken) || !self.goes_on();
        if over || self.nodes.len() == 1 { u64::MAX } else { self.world.vtime() }
    }

    /// Run until one of the ends in `until`, where counts and breakpoints are those of the first node; or until no node can
    /// run any more. Never ends for the conversations' sake.
    pub fn run(&mut self, until: &Until<'_>) -> Stop {
        self.run_until(0, until, &|_| false)
    }

    /// The same with counts and breakpoints of another node, and stop where `wanted` says so: it is asked wherever a guest
    /// has ended a line, and at vtimes at which the host acts.
    fn run_until(&mut self, node: usize, until: &Until<'_>, wanted: &dyn Fn(&Timeline) -> bool) -> Stop {
        loop {
            self.act();
            let point = self.course.trail.next_point();
            let event = self.next_act_ns();
            let inner = WorldUntil {
                vtime: until.vtime.min(event).min(point),
                port_lines: until.port_lines | CONTROL_LINES,
                node,
                icount: until.icount,
                breakpoints: until.breakpoints,
            };
            let world_stop = self.world.run(&inner);
            self.listen();
            if let WorldStop::Node { node, stop } = &world_stop {
                self.note_end(*node, stop);
            }
            self.note_point();
            let stop = match world_stop {
                WorldStop::Time => Stop::Time,
                WorldStop::Node { stop, .. } => stop,
            };
            if wanted(self) {
                return stop;
            }
            match &stop {
                Stop::PortLines(ports) if ports & until.port_lines != 0 => return stop,
                // `listen` has emptied it.
                Stop::PortLines(_) | Stop::OutputFull(_) => {}
                Stop::Time | Stop::Idle if self.world.vtime() < until.vtime.min(VTIME_MAX) => {}
                Stop::End(_) if self.goes_on() => {}
                _ => return stop,
            }
        }
    }

    /// Whether anything can happen any more.
    fn goes_on(&self) -> bool {
        self.world.nodes().iter().any(|node| node.is_on())
    }

    fn note_point(&mut self) {
        let now = self.world.vtime();
        if now >= self.course.trail.next_point() {
            let clock = CpuClock::start();
            self.course.trail.note(now, self.world.digest());
            self.trail_cpu_ns += clock.elapsed_ns();
        }
    }

    /// A node came to an end of its own. When it was the last one, that is the last point of the trail.
    fn note_end(&mut self, node: usize, stop: &Stop) {
        let Stop::End(end) = stop else { return };
        let session = &mut self.nodes[node];
        session.ended(&self.world.nodes()[node], end);
        self.telling.of_node(node, session.conversation.take_events());
        if self.goes_on() {
            return;
        }
        // Within a round the state still shows how the run was cut: the last point lies where the wire has noticed, too.
        let last = self.world.nodes().iter().map(|node| node.vtime()).max().unwrap_or(0);
        let at = last.saturating_add(self.world.wire().lookahead_ns());
        let until = WorldUntil { vtime: at, port_lines: 0, node, icount: u64::MAX, breakpoints: &[] };
        self.world.run(&until);
        if self.course.trail.points().last().is_none_or(|&(last, _)| last < at) {
            self.course.trail.note(at, self.world.digest());
        }
    }

    /// The next vtime at which the host does something by itself.
    fn next_act_ns(&self) -> u64 {
        let nodes = self.nodes.iter().zip(self.world.nodes());
        let nodes = nodes.filter_map(|(session, node)| session.next_act_ns(node));
        nodes.chain(self.next_direction_ns()).min().unwrap_or(VTIME_MAX)
    }

    /// Do what is to be done here. Without effect when it was done.
    fn act(&mut self) {
        let now = self.world.vtime();
        // What one of these does can make another one due here, which must not wait for the next stop.
        loop {
            let before = (self.course.stage, self.course.faults.as_ref().map(|faults| faults.cursor));
            for (number, session) in self.nodes.iter_mut().enumerate() {
                session.act(self.world.node_mut(number), now);
            }
            self.do_faults();
            self.direct();
            let after = (self.course.stage, self.course.faults.as_ref().map(|faults| faults.cursor));
            if before == after {
                break;
            }
        }
        for (number, session) in self.nodes.iter_mut().enumerate() {
            session.speak(self.world.node_mut(number));
            self.telling.of_host(session.conversation.take_events());
        }
    }

    /// Take what the guests wrote.
    fn listen(&mut self) {
        for number in 0..self.nodes.len() {
            let session = &mut self.nodes[number];
            self.telling.of_node(number, session.listen(self.world.node_mut(number)));
            let words = session.conversation.take_words();
            self.take_words(number, words);
        }
        self.observe();
    }
}

impl Subject for Timeline {
    type Engine = AnyEngine;

    fn run(&mut self, node: usize, until: &Until<'_>) -> Stop {
        self.run_until(node, until, &|_| false)
    }

    fn retired(&self, node: usize) -> u64 {
        self.world.nodes()[node].retired()
    }

    fn world_ns(&self, node: usize, vtime: u64) -> u64 {
        self.world.nodes()[node].clock().world(vtime)
    }

    fn nodes(&self) -> usize {
        self.nodes.len()
    }

    fn machine(&mut self, node: usize) -> &mut Machine<AnyEngine> {
        self.machine_mut(node)
    }

    fn digest(&mut self) -> Digest {
        Timeline::digest(self)
    }

    fn between(&self) -> Vec<(String, Digest)> {
        self.world.between()
    }
}

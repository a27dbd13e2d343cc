//! A running world joined to Everett's conversations with the agents in its guests.
//!
//! Everett acts at two kinds of places: at a node, after the instruction with which its guest ended a line on its
//! control port; and at scheduled vtimes, when the whole world has reached them. Both are functions of the timeline, so
//! a run is the same however it is divided into calls of [`Timeline::run`]. Everett acts just before the world
//! continues from such a place, never on arrival. A timeline that is stored there ([`state`]) and continued elsewhere
//! therefore does the same as one that never stopped.
//!
//! * here: running, receiving, acting;
//! * `director`: the course of the whole world, from *ready* through the workload to the checks;
//! * `commands`: the commands of a test template;
//! * `dependents`: restarts of services that depend on restarted ones;
//! * `faults`: the application of a fault plan to the world; `quiet`: times without faults;
//! * `fork`: becoming a child of a moment;
//! * `boot`: running up to the restart points or to *ready*, and beginning under a seed; `boot_watch`: services that end
//!   again and again before *ready*;
//! * [`restart_point`]: the state from which a node starts again after a loss of power;
//! * `streams`: the restart of all random streams at the beginning and at forks;
//! * `talk`: checks that Everett makes itself, over the wire;
//! * `reporting`: events, in an order that does not depend on the calls of `run`;
//! * [`state`]: the state of a timeline that is stored with its world; `stored`: its version and errors.

mod boot;
mod boot_watch;
mod commands;
mod dependents;
mod director;
mod faults;
mod fork;
mod quiet;
mod reporting;
pub mod restart_point;
pub mod state;
mod stored;
mod streams;
mod talk;

use std::sync::Arc;

use everett_host::time::CpuClock;
use everett_protocol::{self as protocol, Exec, Exit, Port};
use everett_vmm::clock::VTIME_MAX;
use everett_vmm::divergence::bisect::Subject;
use everett_vmm::machine::{Machine, Stop, Until};
use everett_vmm::world::{World, WorldStop, WorldUntil};
use everett_vmm::{Digest, Trail};

use super::conversation::{Conversation, Phase};
use super::event::Event;
use super::node::NodeSession;
use super::watching::Watching;
use crate::guest::agent_script::{AgentScript, WorldCheck};
use boot_watch::BootWatch;
use commands::Composing;
use reporting::Reporting;
use state::Course;
use talk::Talk;

pub use super::node::{BOOT_NS_MAX, UNSENT_BYTES_MAX};
pub use boot::{At, BegunAlready, BootError};
pub use director::{ANSWER_NS_MAX, CALM_NS_MAX};
pub use faults::{Faults, OtherPlan, Restarts};
pub use fork::ForkError;
pub use state::SessionState;
pub use stored::{SESSION_VERSION, StateError};

/// Mask of the ports at which the end of a line stops a run: the agent's control port.
const CONTROL_LINES: u8 = 1 << Port::Control as u8;
/// Mask of the port of SDK lines. In worlds with the SDK, their ends stop a run, too.
const SDK_LINES: u8 = 1 << Port::Sdk as u8;
/// Unit name for the output of [`Timeline::command_when_ready`]'s command.
pub const COMMAND: &str = "command";

/// A running world with its conversations.
pub struct Timeline {
    world: World,
    nodes: Vec<NodeSession>,
    /// The world's checks, in their order.
    checks: Vec<WorldCheck>,
    /// Connection of the check that Everett makes over the wire, while that check runs.
    talk: Option<Talk>,
    /// Index of each machine's first data disk; a root disk comes before it.
    first_data_disk: usize,
    faults: Option<Faults>,
    course: Course,
    /// Values derived from the state of the test template's commands.
    composing: Option<Composing>,
    reporting: Reporting,
    /// Observer of the boot, if it is limited and the world was not ready yet.
    boot_watch: Option<BootWatch>,
    /// Lines for the operator about the boot that were not taken yet.
    boot_notes: Vec<String>,
    /// Instructions and vtime in nanoseconds at which the last commands or the checks began, if this timeline saw it.
    checks_begun: Option<(u64, u64)>,
    /// True if the workload ends when it is done, and has not ended yet.
    until_done: bool,
    /// CPU time spent on digests of the trail, in nanoseconds, for statistics.
    trail_cpu_ns: u64,
}

impl Timeline {
    /// Creates the timeline of a world whose machines have not executed anything yet, with one script per node.
    /// `checks` are the world's, in their order.
    #[must_use]
    pub fn new(world: World, plans: Vec<AgentScript>, checks: Vec<WorldCheck>) -> Timeline {
        let has_root = |plan: &AgentScript| !matches!(plan.mount.root, protocol::Root::None);
        let first_data_disk = usize::from(plans.first().is_some_and(has_root));
        let nodes = plans.into_iter().map(|plan| NodeSession::new(Conversation::new(plan))).collect();
        let (course, reporting) = (Course::default(), Reporting::default());
        Timeline {
            world,
            nodes,
            checks,
            talk: None,
            first_data_disk,
            faults: None,
            course,
            composing: None,
            reporting,
            boot_watch: None,
            boot_notes: Vec::new(),
            checks_begun: None,
            until_done: false,
            trail_cpu_ns: 0,
        }
    }

    /// Sets the workload's end to `duration_ns` of vtime after *ready*. At its end, drivers stop and checks run.
    pub fn end_after(&mut self, duration_ns: u64) {
        self.course.duration_ns = Some(duration_ns);
        self.until_done = false;
        self.checks_begun = None;
    }

    /// Ends the workload when drivers, the commands of a test template and the fault plan are done, at most `most_ns`
    /// of vtime after *ready*. At its end, drivers stop and checks run.
    pub fn end_when_done(&mut self, most_ns: u64) {
        self.course.duration_ns = Some(most_ns);
        self.until_done = true;
    }

    /// Returns the duration of the workload after *ready*, in nanoseconds of vtime; 0 if none was set.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.course.duration_ns.unwrap_or(0)
    }

    /// Reports accesses to the watched bytes as events. Nothing else changes.
    pub fn watch(&mut self, watching: &Arc<Watching>) {
        for (number, session) in self.nodes.iter_mut().enumerate() {
            session.watching = Some(Arc::clone(watching));
            self.world.node_mut(number).machine_mut().watch(watching.of_node(number));
        }
    }

    /// Runs a command on the first node when the timeline has begun, and then powers that node off. The command's
    /// output appears under [`COMMAND`].
    pub fn command_when_ready(&mut self, exec: Exec) {
        self.course.command = Some(exec);
    }

    /// Asks all guests to power off. A guest whose agent does not answer stays on.
    pub fn power_off(&mut self) {
        for (session, number) in self.nodes.iter_mut().zip(0..) {
            let node = self.world.node_mut(number);
            session.conversation.power_off(node.vtime());
            session.speak(node);
        }
    }

    /// Returns the exit status of the command of [`Timeline::command_when_ready`], once it has ended.
    #[must_use]
    pub fn command_exit(&self) -> Option<Exit> {
        self.nodes.first()?.conversation.command_exit()
    }

    /// Returns the number of findings.
    #[must_use]
    pub fn findings(&self) -> u64 {
        self.nodes.iter().map(|session| session.conversation.findings()).fold(0, u64::saturating_add)
    }

    /// Returns the world.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Returns the world, for digests and output.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// Returns the machine of a node.
    ///
    /// # Panics
    /// Panics if there is no node of that number.
    #[must_use]
    pub fn machine(&self, node: usize) -> &Machine {
        self.world.nodes()[node].machine()
    }

    /// Returns the machine of a node, for its output.
    ///
    /// # Panics
    /// Panics if there is no node of that number.
    pub fn machine_mut(&mut self, node: usize) -> &mut Machine {
        self.world.node_mut(node).machine_mut()
    }

    /// Returns the vtime that every running node has reached, in nanoseconds.
    #[must_use]
    pub fn vtime(&self) -> u64 {
        self.world.vtime()
    }

    /// Returns the sum of the nodes' counts: retired instructions, conditional branches or exits, by clock mode.
    #[must_use]
    pub fn icount(&self) -> u64 {
        self.world.icount()
    }

    /// Returns the digest of the world: everything that decides what happens next, except Everett's own session.
    pub fn digest(&mut self) -> Digest {
        self.world.digest()
    }

    /// Returns the digests so far, at each multiple of 100 ms of vtime.
    #[must_use]
    pub fn trail(&self) -> &Trail {
        &self.course.trail
    }

    /// Returns the CPU time spent on digests of the trail so far, in nanoseconds.
    #[must_use]
    pub fn trail_cpu_ns(&self) -> u64 {
        self.trail_cpu_ns
    }

    /// Returns the world and drops its conversations.
    #[must_use]
    pub fn into_world(self) -> World {
        self.world
    }

    /// Queues the events from before the moment at which this timeline continues; [`Timeline::take_events`] returns
    /// them first.
    pub fn events_again(&mut self, events: &[Event]) {
        self.reporting.again(events);
    }

    /// Takes the events since the last call, in the order of their vtimes. While the world still runs, events of a node
    /// that is ahead are held back until the other nodes have reached the vtime of these events.
    pub fn take_events(&mut self) -> Vec<Event> {
        let events = self.reporting.take(self.all_reported_before());
        self.watch_events_of_boot(&events);
        events
    }

    /// Returns the vtime before which no further event can happen.
    fn all_reported_before(&self) -> u64 {
        let over = matches!(self.phase(), Phase::Done | Phase::Broken) || !self.goes_on();
        if over || self.nodes.len() == 1 { u64::MAX } else { self.world.vtime() }
    }

    /// Runs until a condition of `until` is met, or until no node can run any more. The counts and breakpoints of
    /// `until` refer to the first node. Conversations never end the run.
    pub fn run(&mut self, until: &Until<'_>) -> Stop {
        self.run_until(0, until, &|_| false)
    }

    /// Like [`Timeline::run`], but counts and breakpoints refer to `node`, and it also stops when `wanted` returns
    /// true. `wanted` is called wherever a guest has ended a line, and at vtimes at which Everett acts.
    fn run_until(&mut self, node: usize, until: &Until<'_>, wanted: &dyn Fn(&Timeline) -> bool) -> Stop {
        loop {
            self.act();
            let point = self.course.trail.next_point();
            let event = self.next_act_ns();
            let inner = WorldUntil {
                vtime: until.vtime.min(event).min(point),
                port_lines: until.port_lines | self.lines_to_act_on(),
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
                // `listen` has already taken this output.
                Stop::PortLines(_) | Stop::OutputFull(_) => {}
                Stop::Time | Stop::Idle if self.world.vtime() < until.vtime.min(VTIME_MAX) => {}
                Stop::End(_) if self.goes_on() => {}
                _ => return stop,
            }
        }
    }

    /// Returns the ports at which the end of a line stops a run.
    fn lines_to_act_on(&self) -> u8 {
        let has_sdk = self.nodes.first().is_some_and(|session| session.conversation.plan().sdk.is_some());
        if has_sdk { CONTROL_LINES | SDK_LINES } else { CONTROL_LINES }
    }

    /// Returns true if any node is still on.
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

    /// Reports that a node ended by itself. If it was the last one, the trail's last point follows.
    fn note_end(&mut self, node: usize, stop: &Stop) {
        let Stop::End(end) = stop else { return };
        let session = &mut self.nodes[node];
        session.ended(&self.world.nodes()[node], end);
        self.reporting.of_node(node, session.conversation.take_events());
        if self.goes_on() {
            return;
        }
        // Within a round, the state depends on how the run was divided. The last point therefore lies after the wire's
        // lookahead.
        let last = self.world.nodes().iter().map(|node| node.vtime()).max().unwrap_or(0);
        let at = last.saturating_add(self.world.wire().lookahead_ns());
        let until = WorldUntil { vtime: at, port_lines: 0, node, icount: u64::MAX, breakpoints: &[] };
        self.world.run(&until);
        if self.course.trail.points().last().is_none_or(|&(last, _)| last < at) {
            self.course.trail.note(at, self.world.digest());
        }
    }

    /// Returns the next vtime at which Everett acts unprompted, or [`VTIME_MAX`].
    fn next_act_ns(&self) -> u64 {
        let nodes = self.nodes.iter().zip(self.world.nodes());
        let nodes = nodes.filter_map(|(session, node)| session.next_act_ns(node));
        nodes.chain(self.next_direction_ns()).min().unwrap_or(VTIME_MAX)
    }

    /// Performs the actions that are due at the current vtime. A second call at the same place has no effect.
    fn act(&mut self) {
        let now = self.world.vtime();
        // One action can make another one due at this vtime, which must not wait for the next stop.
        loop {
            let before = (self.course.stage, self.course.faults.as_ref().map(|faults| faults.cursor));
            for (number, session) in self.nodes.iter_mut().enumerate() {
                session.act(self.world.node_mut(number), now);
            }
            self.start_in_order(now);
            self.do_faults();
            self.direct();
            let after = (self.course.stage, self.course.faults.as_ref().map(|faults| faults.cursor));
            if before == after {
                break;
            }
        }
        for (number, session) in self.nodes.iter_mut().enumerate() {
            session.speak(self.world.node_mut(number));
            self.reporting.of_host(session.conversation.take_events());
        }
    }

    /// Takes the guests' output.
    fn listen(&mut self) {
        for number in 0..self.nodes.len() {
            let session = &mut self.nodes[number];
            self.reporting.of_node(number, session.listen(self.world.node_mut(number)));
            let words = session.conversation.take_words();
            let quiets = session.conversation.take_quiets();
            let restarted = session.conversation.take_restarted();
            self.take_words(number, words);
            self.note_restarts(number, &restarted);
            quiets.into_iter().for_each(|quiet| self.ask_quiet(quiet));
        }
        self.observe();
    }
}

impl Subject for Timeline {
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

    fn machine(&mut self, node: usize) -> &mut Machine {
        self.machine_mut(node)
    }

    fn digest(&mut self) -> Digest {
        Timeline::digest(self)
    }

    fn between(&self) -> Vec<(String, Digest)> {
        self.world.between()
    }
}

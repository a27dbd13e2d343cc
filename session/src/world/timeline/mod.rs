//! A running world, together with Everett's conversations with the agents (its programs in the guests).
//!
//! Everett acts at two kinds of points. At a single node, it acts after the instruction with which the guest ended a
//! line on the agent's control port or, in worlds with the SDK, on the SDK port. In the whole world, it acts at a
//! scheduled vtime, when all nodes have reached that vtime. The timeline alone determines these points, so a run is the
//! same however calls of [`Timeline::run`] divide it.
//!
//! Everett acts just before the world continues from a point, never when it arrives there. A timeline that is stored at
//! the point ([`state`]) and continued elsewhere therefore does the same as a timeline that never stopped.
//!
//! - this file: a timeline's run loop, its input and its output
//! - `director`: course of the whole world from *ready* to the checks
//! - `commands`: commands of a test template
//! - `dependents`: restarts of services that depend on restarted services
//! - `faults`: application of a fault plan
//! - `quiet`: periods without faults
//! - `fork`: forks, at which the timeline continues as a new branch
//! - `boot`: the boot up to *ready* (all services are up), and the start of a timeline from *ready* under a seed
//! - `boot_watch`: detection of services that end again and again during a boot
//! - [`restart_point`]: state from which a node restarts after a power loss
//! - `streams`: restart of all random streams when the timeline begins, and at each fork
//! - `asked`: requests of a caller outside the timeline
//! - `talk`: checks that Everett makes over the wire
//! - `reporting`: queue of events
//! - [`state`]: stored state of a timeline
//! - `stored`: version and errors of the stored state

mod asked;
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

use std::collections::BTreeSet;
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
use super::node::{NodeSession, earlier};
use super::watching::Watching;
use crate::guest::agent_script::{AgentScript, WorldCheck};
use boot_watch::BootWatch;
use commands::Composing;
use reporting::Reporting;
use state::Course;
use talk::Talk;

pub use super::node::{BOOT_NS_MAX, UNSENT_BYTES_MAX};
pub use asked::CannotInject;
pub use boot::{At, BegunAlready, BootError};
pub use director::{ANSWER_NS_MAX, CALM_NS_MAX};
pub use faults::{Faults, OtherPlan, Restarts, disk_copy};
pub use fork::ForkError;
pub use state::SessionState;
pub use stored::{SESSION_VERSION, StateError};

/// Mask of the ports at which a line's end stops a run: the agent's control port.
const CONTROL_LINES: u8 = 1 << Port::Control as u8;
/// Mask of the port for SDK lines. In worlds with the SDK, a line's end on this port stops a run too.
const SDK_LINES: u8 = 1 << Port::Sdk as u8;
/// Name under which the output of the command of [`Timeline::command_when_ready`] appears.
pub const COMMAND: &str = "command";

/// A running world, with Everett's conversations with the agents in its guests.
pub struct Timeline {
    world: World,
    nodes: Vec<NodeSession>,
    /// Checks of the world, in the order of the world file.
    checks: Vec<WorldCheck>,
    /// Connection of the running check, if Everett makes this check over the wire.
    talk: Option<Talk>,
    /// Index of each machine's first data disk: 1 if a root disk comes before it, otherwise 0.
    first_data_disk: usize,
    faults: Option<Faults>,
    course: Course,
    /// State of the test template's commands that is not stored, but derived from stored state.
    composing: Option<Composing>,
    reporting: Reporting,
    /// Observer that gives up a boot in which services end again and again. `None` if services may end any number of
    /// times, or if the boot is over.
    boot_watch: Option<BootWatch>,
    /// Messages to the operator about the boot. The caller has not taken these messages yet.
    boot_notes: Vec<String>,
    /// Nodes whose missing instruction was reported ([`Timeline::take_missing_notes`]).
    missing_reported: BTreeSet<usize>,
    /// [`Timeline::icount`] and vtime in nanoseconds at the start of the test template's `eventually_` and `finally_`
    /// commands or, without these commands, at the start of the checks.
    checks_begun: Option<(u64, u64)>,
    /// True if the workload will end by itself and has not ended yet.
    until_done: bool,
    /// CPU time for digests of the trail, in nanoseconds, for statistics.
    trail_cpu_ns: u64,
}

impl Timeline {
    /// Creates the timeline of a world whose machines have not executed anything yet. `scripts` has one agent script
    /// (what Everett asks of an agent) per node. `checks` are in the order of the world file.
    #[must_use]
    pub fn new(world: World, scripts: Vec<AgentScript>, checks: Vec<WorldCheck>) -> Timeline {
        let has_root = |script: &AgentScript| !matches!(script.mount.root, protocol::Root::None);
        let first_data_disk = usize::from(scripts.first().is_some_and(has_root));
        let nodes = scripts.into_iter().map(|script| NodeSession::new(Conversation::new(script))).collect();
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
            missing_reported: BTreeSet::new(),
            checks_begun: None,
            until_done: false,
            trail_cpu_ns: 0,
        }
    }

    /// Sets the end of the workload to `duration_ns` of vtime after *ready*. The drivers stop at the end, and the
    /// checks run.
    pub fn end_after(&mut self, duration_ns: u64) {
        self.course.duration_ns = Some(duration_ns);
        self.until_done = false;
        self.checks_begun = None;
    }

    /// Ends the workload when the drivers, the test commands and the fault plan are done, but at the latest `most_ns` of
    /// vtime after *ready*. The drivers stop at the end, and the checks run.
    pub fn end_when_done(&mut self, most_ns: u64) {
        self.course.duration_ns = Some(most_ns);
        self.until_done = true;
    }

    /// Returns the duration of the workload after *ready*, in nanoseconds of vtime, or 0 if it has no end.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.course.duration_ns.unwrap_or(0)
    }

    /// Reports accesses to the watched bytes as events. The timeline stays the same.
    pub fn watch(&mut self, watching: &Arc<Watching>) {
        for (number, session) in self.nodes.iter_mut().enumerate() {
            session.watching = Some(Arc::clone(watching));
            self.world.node_mut(number).machine_mut().watch(watching.of_node(number));
        }
    }

    /// Runs a command on the first node when the timeline has begun, and then powers this node off. The command's
    /// output appears under the name [`COMMAND`].
    pub fn command_when_ready(&mut self, exec: Exec) {
        self.course.command = Some(exec);
    }

    /// Asks the agents of all guests to power off. A guest whose agent does not answer stays on.
    pub fn power_off(&mut self) {
        for (session, number) in self.nodes.iter_mut().zip(0..) {
            let node = self.world.node_mut(number);
            session.conversation.power_off(node.vtime());
            session.speak(node);
        }
    }

    /// Returns the exit status of the command of [`Timeline::command_when_ready`], if the command has ended.
    #[must_use]
    pub fn command_exit(&self) -> Option<Exit> {
        self.nodes.first()?.conversation.command_exit()
    }

    /// Returns the number of findings so far.
    #[must_use]
    pub fn findings(&self) -> u64 {
        self.nodes.iter().map(|session| session.conversation.findings()).fold(0, u64::saturating_add)
    }

    /// Returns the world, with its machines and its wire.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Returns the world. Callers may compute digests and take output, but must not run it.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// Returns the machine of the node with this index.
    ///
    /// # Panics
    /// Panics if there is no such node.
    #[must_use]
    pub fn machine(&self, node: usize) -> &Machine {
        self.world.nodes()[node].machine()
    }

    /// Returns the machine of the node with this index. Callers may take its output, but must not run it.
    ///
    /// # Panics
    /// Panics if there is no such node.
    pub fn machine_mut(&mut self, node: usize) -> &mut Machine {
        self.world.node_mut(node).machine_mut()
    }

    /// Returns lines that tell the operator of instructions that programs executed although the CPU model lacks them: one for
    /// each node, at its first such instruction since this timeline was created.
    pub fn take_missing_notes(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for node in 0..self.world.nodes().len() {
            let machine = self.machine_mut(node);
            let Some(missing) = machine.take_missing_instruction() else { continue };
            let (name, model) = (machine.name().to_owned(), machine.cpu_model());
            if self.missing_reported.insert(node) {
                lines.push(format!(
                    "node {name}: a program executed {missing}, which the CPU model {model} lacks; cpu = \"{}\" in the world file \
                     has it",
                    missing.model_for(model)
                ));
            }
        }
        lines
    }

    /// Returns the vtime that every running node has reached, in nanoseconds.
    #[must_use]
    pub fn vtime(&self) -> u64 {
        self.world.vtime()
    }

    /// Returns the sum of all nodes' counts. The clock mode decides what they count: retired instructions, conditional
    /// branches or exits.
    #[must_use]
    pub fn icount(&self) -> u64 {
        self.world.icount()
    }

    /// Returns the digest of the world. It covers everything that decides the world's future, except the state of this
    /// timeline's conversations.
    pub fn digest(&mut self) -> Digest {
        self.world.digest()
    }

    /// Returns the trail so far, with a digest at each multiple of 100 ms of vtime.
    #[must_use]
    pub fn trail(&self) -> &Trail {
        &self.course.trail
    }

    /// Returns the CPU time for digests of the trail so far, in nanoseconds.
    #[must_use]
    pub fn trail_cpu_ns(&self) -> u64 {
        self.trail_cpu_ns
    }

    /// Returns the world and drops its conversations.
    #[must_use]
    pub fn into_world(self) -> World {
        self.world
    }

    /// Queues `events`, which a timeline reported before the moment from which this timeline continues. The next
    /// [`Timeline::take_events`] returns them before all other events.
    pub fn events_again(&mut self, events: &[Event]) {
        self.reporting.again(events);
    }

    /// Takes the events since the last call, ordered by vtime. A running node can be ahead of others. Its
    /// events are held back until the other nodes have reached the vtime of these events.
    pub fn take_events(&mut self) -> Vec<Event> {
        let events = self.reporting.take(self.all_reported_before());
        self.watch_events_of_boot(&events);
        events
    }

    /// Returns a vtime before which no further event can happen.
    fn all_reported_before(&self) -> u64 {
        let over = matches!(self.phase(), Phase::Done | Phase::Broken) || !self.goes_on();
        if over || self.nodes.len() == 1 { u64::MAX } else { self.world.vtime() }
    }

    /// Runs until a condition of `until` is met or no node can run. The count in `until` refers to the first node.
    /// Actions of Everett do not end the run.
    pub fn run(&mut self, until: &Until) -> Stop {
        self.run_until(0, until, &|_| false)
    }

    /// Like [`Timeline::run`], with two differences. The count refers to `node`, and the run also stops when `wanted`
    /// returns true. `wanted` is called after a guest has ended a line, and at vtimes at which Everett acts.
    fn run_until(&mut self, node: usize, until: &Until, wanted: &dyn Fn(&Timeline) -> bool) -> Stop {
        self.run_stopped(node, until, wanted).1
    }

    /// Like [`Timeline::run`], with two differences. The count refers to `node`. The result says which node stopped, or
    /// `None` if the whole world stopped.
    pub fn run_node(&mut self, node: usize, until: &Until) -> (Option<usize>, Stop) {
        self.run_stopped(node, until, &|_| false)
    }

    fn run_stopped(
        &mut self,
        node: usize,
        until: &Until,
        wanted: &dyn Fn(&Timeline) -> bool,
    ) -> (Option<usize>, Stop) {
        loop {
            self.act();
            let point = self.course.trail.next_point();
            let event = self.next_act_ns();
            let inner = WorldUntil {
                vtime: until.vtime.min(event).min(point),
                port_lines: until.port_lines | self.lines_to_act_on(),
                node,
                icount: until.icount,
            };
            let world_stop = self.world.run(&inner);
            self.listen();
            if let WorldStop::Node { node, stop } = &world_stop {
                self.note_end(*node, stop);
            }
            self.note_point();
            let stopped = match world_stop {
                WorldStop::Time => (None, Stop::Time),
                WorldStop::Node { node, stop } => (Some(node), stop),
            };
            if wanted(self) {
                return stopped;
            }
            match &stopped.1 {
                Stop::PortLines(ports) if ports & until.port_lines != 0 => return stopped,
                // `listen` has already taken this output.
                Stop::PortLines(_) | Stop::OutputFull(_) => {}
                Stop::Time | Stop::Idle if self.world.vtime() < until.vtime.min(VTIME_MAX) => {}
                Stop::End(_) if self.goes_on() => {}
                _ => return stopped,
            }
        }
    }

    /// Returns the mask of ports at which a line's end stops a run.
    fn lines_to_act_on(&self) -> u8 {
        let has_sdk = self.nodes.first().is_some_and(|session| session.conversation.script().sdk.is_some());
        if has_sdk { CONTROL_LINES | SDK_LINES } else { CONTROL_LINES }
    }

    /// Returns true if at least one node is on.
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

    /// Reports that a node ended by itself. After the last node's end, also adds the last point of the trail.
    fn note_end(&mut self, node: usize, stop: &Stop) {
        let Stop::End(end) = stop else { return };
        let session = &mut self.nodes[node];
        session.ended(&self.world.nodes()[node], end);
        self.reporting.of_node(node, session.conversation.take_events());
        if self.goes_on() {
            return;
        }
        // Nodes run one after the other from one exchange of frames to the next. In between, some nodes are ahead of
        // others, and how far depends on how calls of `run` divide the run. When all nodes have reached one vtime, this
        // does not matter any more. So the world runs to one wire latency after the latest vtime of any node, and the
        // trail's last point lies there.
        let last = self.world.nodes().iter().map(|node| node.vtime()).max().unwrap_or(0);
        let at = last.saturating_add(self.world.wire().lookahead_ns());
        let until = WorldUntil { vtime: at, port_lines: 0, node, icount: u64::MAX };
        self.world.run(&until);
        if self.course.trail.points().last().is_none_or(|&(last, _)| last < at) {
            self.course.trail.note(at, self.world.digest());
        }
    }

    /// Returns the next scheduled vtime of an action, or [`VTIME_MAX`] if there is none.
    fn next_act_ns(&self) -> u64 {
        let mut next_ns = self.next_direction_ns();
        for (session, node) in self.nodes.iter().zip(self.world.nodes()) {
            next_ns = earlier(next_ns, session.next_act_ns(node));
        }
        next_ns.unwrap_or(VTIME_MAX)
    }

    /// Performs the actions that are due at the current vtime. A second call at the same vtime has no effect.
    fn act(&mut self) {
        let now = self.world.vtime();
        // An action can make another action due at the same vtime. The second action must not wait for the next stop.
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

    /// Takes the output of all guests.
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
    fn run(&mut self, node: usize, until: &Until) -> Stop {
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

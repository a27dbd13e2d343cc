//! One node's part of a timeline. It connects the node's machine with the conversation, i.e. with the messages between
//! Everett and the agent (Everett's program in the guest).
//!
//! All vtimes here are the world's, except where a comment names the machine's own vtime. Everett answers a guest at
//! the vtime that its node has reached, even if other nodes are behind. Actions at a scheduled vtime happen when the
//! whole world has reached it.

use std::sync::Arc;

use chacha20::rand_core::Rng;
use everett_explorer::property::builtin;
use everett_fault::Distribution;
use everett_input::units::show_duration_ns;
use everett_protocol::limits::PRIORITY_MAX;
use everett_protocol::{Bytes, Operation, Port, WallClock};
use everett_streams::{Purpose, Seed};
use everett_vmm::machine::End;
use everett_vmm::output::{Note, NoteEvent};
use everett_vmm::world::Node;
use serde::{Deserialize, Serialize};

use super::conversation::state::ConversationState;
use super::conversation::{Conversation, Phase};
use super::event::{Event, What};
use super::watching::Watching;

/// Delay before Everett sends bytes again that the guest's port did not accept, in nanoseconds of vtime.
const RETRY_NS: u64 = 1_000_000;
/// Maximum number of bytes that wait for the guest's control port. Everett gives up an agent that lets more bytes wait.
pub const UNSENT_BYTES_MAX: usize = 64 << 20;
/// Time limit of a boot, in nanoseconds of vtime: ten minutes.
pub const BOOT_NS_MAX: u64 = 600_000_000_000;
const NS_PER_S: i64 = 1_000_000_000;
/// Number of random priorities that Everett draws at once for the threads of a unit, e.g. a service. In a unit with
/// more threads, some priorities serve several threads.
const PRIORITIES: usize = 32;
/// Number of random bytes with which Everett reseeds the guest's kernel.
const ENTROPY_BYTES: usize = 64;
/// Beginning of the message that Linux prints in `panic()`.
const PANIC: &[u8] = b"Kernel panic";

/// State of a node outside its machine and its conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeCourse {
    /// Bytes that the control port has not accepted yet.
    pub unsent: Vec<u8>,
    pub retry_at_ns: Option<u64>,
    /// Vtime at which a node that is still not ready counts as failed, in nanoseconds.
    pub boot_until_ns: Option<u64>,
    /// Seed of the timeline that has begun on this node. After a restart of the node, the timeline begins again on it,
    /// under the same seed.
    pub begun: Option<Seed>,
    /// `CLOCK_REALTIME` minus the machine's own vtime, in nanoseconds. `None` until Everett has set the clock.
    pub wall_ns: Option<i64>,
    /// Units, such as services, whose threads get new random priorities at intervals because of a fault.
    pub priorities: Vec<Priorities>,
    /// True if a fault switched the node off.
    pub switched_off: bool,
    /// True if an event has reported the end of the machine.
    pub end_reported: bool,
    /// Message of the kernel's panic.
    pub last_words: Option<String>,
}

/// A unit whose threads get new random priorities at intervals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Priorities {
    unit: String,
    every: Distribution,
    next_ns: u64,
}

/// Stored state of a node, without its machine and the list of requests to its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionOfNode {
    pub node: String,
    pub conversation: ConversationState,
    pub course: NodeCourse,
}

/// One node's part of a timeline.
pub(super) struct NodeSession {
    pub conversation: Conversation,
    pub course: NodeCourse,
    /// Watchpoints and the kernel's symbols, if the operator watches memory.
    pub watching: Option<Arc<Watching>>,
}

impl NodeSession {
    pub(super) fn new(conversation: Conversation) -> NodeSession {
        NodeSession { conversation, course: NodeCourse::default(), watching: None }
    }

    /// Returns the next vtime at which Everett must act on this node, or `None` if the node has no power. A paused
    /// guest receives nothing, so only the boot limit can make Everett act on its node.
    pub(super) fn next_act_ns(&self, node: &Node) -> Option<u64> {
        let course = &self.course;
        if !node.is_on() {
            return None;
        }
        if node.is_paused() {
            return course.boot_until_ns;
        }
        let mut next_ns = earlier(course.retry_at_ns, course.boot_until_ns);
        for priorities in &course.priorities {
            next_ns = earlier(next_ns, Some(priorities.next_ns));
        }
        for kill_ns in self.conversation.kills_ns() {
            next_ns = earlier(next_ns, Some(kill_ns));
        }
        next_ns
    }

    /// Starts the time limit [`BOOT_NS_MAX`] of the boot. Has no effect if the node is ready or a limit is already set.
    pub(super) fn limit_boot(&mut self, world_ns: u64) {
        if self.conversation.phase() < Phase::Ready && self.course.boot_until_ns.is_none() {
            self.course.boot_until_ns = Some(world_ns.saturating_add(BOOT_NS_MAX));
        }
    }

    /// Performs the actions that are due when the whole world has reached `world_ns`. A second call at the same vtime
    /// has no effect.
    pub(super) fn act(&mut self, node: &mut Node, world_ns: u64) {
        if !node.is_on() {
            return;
        }
        match self.conversation.phase() {
            Phase::Mounted => {
                let entropy = draw_entropy(node);
                let now = node.vtime();
                let epoch_ns = i64::try_from(self.conversation.script().epoch_unix_s)
                    .unwrap_or(0)
                    .saturating_mul(NS_PER_S);
                let since = i64::try_from(now).unwrap_or(i64::MAX)
                    - i64::try_from(node.machine().vtime()).unwrap_or(0);
                self.course.wall_ns = Some(epoch_ns.saturating_add(since));
                self.conversation.join(entropy, now);
            }
            Phase::Ready => {
                if let Some(seed) = self.course.begun {
                    let entropy = draw_entropy(node);
                    self.conversation.begin(seed, entropy, node.vtime());
                }
            }
            _ => {}
        }
        if self.conversation.phase() >= Phase::Ready {
            self.course.boot_until_ns = None;
        } else if self.course.boot_until_ns.is_some_and(|at| at <= world_ns) {
            self.course.boot_until_ns = None;
            self.conversation.boot_took_too_long(world_ns, &show_duration_ns(BOOT_NS_MAX));
        }
        if !node.is_paused() {
            self.change_priorities(node, world_ns);
            self.conversation.kill_late(world_ns);
        }
        self.speak(node);
        if self.course.retry_at_ns.is_some_and(|at| at <= world_ns) {
            self.send(node);
        }
    }

    /// Gives the machine a new VM generation ID, which tells the guest that its machine was copied.
    pub(super) fn new_generation(&self, node: &mut Node) {
        let mut generation = [0; 16];
        node.machine_mut().stream(Purpose::Generation).fill_bytes(&mut generation);
        node.machine_mut().new_generation(generation);
    }

    /// Begins the timeline on this node under `seed`.
    pub(super) fn begin(&mut self, node: &mut Node, seed: Seed) {
        self.new_generation(node);
        let entropy = draw_entropy(node);
        self.course.begun = Some(seed);
        self.conversation.begin(seed, entropy, node.vtime());
        self.speak(node);
    }

    /// Takes the guest's output. A line has the vtime of the write that ended it.
    pub(super) fn listen(&mut self, node: &mut Node) -> Vec<Event> {
        // A world often stops although a guest has written nothing.
        if !node.machine_mut().output().has_writes_or_notes() {
            return self.conversation.take_events();
        }
        let clock = node.clock().clone();
        let output = node.machine_mut().output();
        let mut writes = Vec::new();
        for port in [Port::History, Port::Sdk, Port::Log, Port::Control] {
            for write in output.take_port(port as usize) {
                writes.push((port, write));
            }
        }
        for port in [Port::Debug, Port::Spare] {
            output.take_port(port as usize);
        }
        // The sort is stable, so writes of one port stay in order. At equal vtimes, lines of the history, SDK and log
        // ports come before the agent's messages.
        writes.sort_by_key(|(_, write)| write.vtime);
        for (port, write) in writes {
            self.conversation.received(port, &write.bytes, clock.world(write.vtime));
        }
        for Note { vtime, event } in node.machine_mut().output().take_notes() {
            self.noticed(clock.world(vtime), event);
        }
        self.conversation.take_events()
    }

    /// Handles a note of the machine: a console line, a broken device or a watched access.
    fn noticed(&mut self, vtime_ns: u64, event: NoteEvent) {
        match event {
            NoteEvent::Console { text, .. } => {
                if let Some(at) = text.windows(PANIC.len()).position(|window| window == PANIC) {
                    self.course.last_words = Some(String::from_utf8_lossy(&text[at..]).into_owned());
                }
                let text = String::from_utf8_lossy(&text).into_owned();
                self.conversation.report(vtime_ns, What::Kernel { text });
            }
            NoteEvent::Device { slot, kind, error } => {
                let text = format!("the driver of {kind} (virtio slot {slot}) broke its device: {error}");
                self.conversation.noticed(vtime_ns, builtin::MACHINE_STOPPED, &text);
            }
            NoteEvent::Access(hit) => {
                let symbol = self.watching.as_ref().and_then(|watching| watching.kernel.name(hit.rip));
                self.conversation.report(vtime_ns, What::access(&hit, symbol));
            }
            NoteEvent::Unknown { .. } => {}
        }
    }

    /// Reports the end of the machine, if it was not reported already.
    pub(super) fn ended(&mut self, node: &Node, end: &End) {
        if std::mem::replace(&mut self.course.end_reported, true) {
            return;
        }
        let asked = self.conversation.is_powering_off() && *end == End::PowerOff;
        let why = match &self.course.last_words {
            Some(words) => format!("{end}: {words}"),
            None => end.to_string(),
        };
        if asked {
            self.conversation.machine_done(node.vtime());
            return;
        }
        let property = match end {
            End::Engine(_) => builtin::ENGINE_FAILURE,
            _ => builtin::MACHINE_STOPPED,
        };
        self.conversation.machine_ended(node.vtime(), property, &why);
    }

    /// Steps the guest's `CLOCK_REALTIME` forward or back, as NTP would.
    pub(super) fn step_clock(&mut self, node: &Node, step_ns: i64) {
        let wall_ns = self.course.wall_ns.unwrap_or(0).saturating_add(step_ns);
        self.course.wall_ns = Some(wall_ns);
        let now_ns = i64::try_from(node.machine().vtime()).unwrap_or(i64::MAX).saturating_add(wall_ns).max(0);
        // The remainder is less than 10^9 and fits.
        let clock = WallClock { seconds: now_ns / NS_PER_S, nanoseconds: (now_ns % NS_PER_S) as u32 };
        self.conversation.fault(Operation::SetClock(clock), node.vtime());
    }

    /// Asks the agent to reseed the kernel's random number generator.
    pub(super) fn reseed(&mut self, node: &mut Node) {
        let entropy = draw_entropy(node);
        self.conversation.fault(Operation::Reseed { entropy: Bytes(entropy) }, node.vtime());
    }

    /// Starts to give the threads of a unit new priorities. Each interval is drawn from `every`.
    pub(super) fn start_priorities(&mut self, node: &Node, unit: &str, every: &Distribution) {
        self.course.priorities.push(Priorities {
            unit: unit.to_owned(),
            every: every.clone(),
            next_ns: node.vtime(),
        });
    }

    /// Gives the threads of a unit their normal priority and stops the draws.
    pub(super) fn stop_priorities(&mut self, unit: &str, world_ns: u64) {
        self.course.priorities.retain(|priorities| priorities.unit != unit);
        if self.conversation.phase() >= Phase::Ready {
            self.conversation.prioritize(unit, vec![0], world_ns);
        }
    }

    fn change_priorities(&mut self, node: &mut Node, world_ns: u64) {
        for priorities in
            self.course.priorities.iter_mut().filter(|priorities| priorities.next_ns <= world_ns)
        {
            let rng = node.machine_mut().stream(Purpose::Priorities);
            let mut drawn = [0; PRIORITIES];
            rng.fill_bytes(&mut drawn);
            // These are real-time priorities: a runnable thread runs before all threads of a lower priority. Two
            // threads can draw the same priority. Then one thread waits until the other blocks.
            let drawn = drawn.map(|byte| byte % PRIORITY_MAX + 1).to_vec();
            priorities.next_ns = world_ns.saturating_add(priorities.every.draw(rng).max(1));
            // If the agent is slower than the interval, some draws are skipped.
            if !self.conversation.is_prioritizing() {
                self.conversation.prioritize(&priorities.unit, drawn, world_ns);
            }
        }
    }

    /// Resets the session after a power loss. With `mounted`, the next boot starts at the restart point (a stored
    /// state of the machine in which the agent has mounted the root), with this state of the conversation. Without
    /// `mounted`, the next boot starts at power-on.
    pub(super) fn restart(&mut self, mounted: Option<&ConversationState>, world_ns: u64) {
        self.conversation.lose_asked(world_ns);
        self.conversation.restart(mounted);
        self.course = NodeCourse { begun: self.course.begun, ..NodeCourse::default() };
    }

    /// Sends the conversation's pending requests.
    pub(super) fn speak(&mut self, node: &mut Node) {
        let outgoing = self.conversation.take_outgoing();
        if !outgoing.is_empty() {
            self.course.unsent.extend(outgoing);
            self.send(node);
            if self.course.unsent.len() > UNSENT_BYTES_MAX {
                self.course.unsent.clear();
                self.course.retry_at_ns = None;
                self.conversation.unusable(node.vtime(), "the agent does not read its requests");
            }
        }
    }

    fn send(&mut self, node: &mut Node) {
        let unsent = &mut self.course.unsent;
        if !unsent.is_empty() {
            let taken = node.machine_mut().port_input(Port::Control as usize, unsent);
            unsent.drain(..taken.min(unsent.len()));
        }
        self.course.retry_at_ns = (!unsent.is_empty()).then(|| node.vtime() + RETRY_NS);
    }
}

/// Returns the earlier one of two vtimes, if there is one. This crate is compiled without optimisation, and worlds ask for
/// their next vtime at each stop, so a chain of iterators would be slow.
pub(super) fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if one < other { one } else { other }),
        (Some(one), None) => Some(one),
        (None, other) => other,
    }
}

fn draw_entropy(node: &mut Node) -> Vec<u8> {
    let mut entropy = vec![0; ENTROPY_BYTES];
    node.machine_mut().stream(Purpose::AgentEntropy).fill_bytes(&mut entropy);
    entropy
}

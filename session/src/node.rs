//! One node's end of a timeline: its machine's ports joined to the conversation with its agent.
//!
//! All times are the world's. What is done in answer to the guest is done at the node's own place; what is done at a vtime
//! is done when the whole world is there.

use std::sync::Arc;

use everett_explorer::property::builtin;
use everett_fault::Distribution;
use everett_input::units::show_duration_ns;
use everett_protocol::limits::PRIORITY_MAX;
use everett_protocol::{Bytes, Operation, Port, WallClock};
use everett_streams::Purpose;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::machine::End;
use everett_vmm::output::{Note, NoteEvent};
use everett_vmm::world::Node;
use rand_chacha::rand_core::Rng;
use serde::{Deserialize, Serialize};

use super::conversation::state::ConversationState;
use super::conversation::{Conversation, Phase};
use super::event::{Event, What};
use super::watching::Watching;

/// Bytes that the guest's port did not take are offered again after so many nanoseconds of vtime.
const RETRY_NS: u64 = 1_000_000;
/// Most bytes that wait for the guest's port. An agent reads what it is asked; one that does not is given up.
pub const UNSENT_BYTES_MAX: usize = 64 << 20;
/// A machine gets ready in so much vtime or not at all: ten minutes.
pub const BOOT_NS_MAX: u64 = 600_000_000_000;
const NS_PER_S: i64 = 1_000_000_000;
/// Priorities that are drawn at a time: a unit with more threads has some of the same.
const PRIORITIES: usize = 32;
/// Bytes that the guest's kernel is reseeded with.
const ENTROPY_BYTES: usize = 64;
/// What Linux's panic() prints.
const PANIC: &[u8] = b"Kernel panic";

/// Where a node is, besides its machine and its conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// What the control port has not taken yet, and when it is offered again.
    pub unsent: Vec<u8>,
    pub retry_at_ns: Option<u64>,
    /// When a machine that is not ready will not be any more.
    pub boot_until_ns: Option<u64>,
    /// The seed that it has begun under: when it is ready again, it goes on by itself.
    pub begun: Option<u64>,
    /// `CLOCK_REALTIME` minus the machine's own time, in nanoseconds, since it was set.
    pub wall_ns: Option<i64>,
    /// Units whose threads get other priorities from time to time.
    pub priorities: Vec<Priorities>,
    /// It has no power because somebody took it away.
    pub switched_off: bool,
    /// The machine's end was told.
    pub end_reported: bool,
    /// The line with which the kernel panicked.
    pub last_words: Option<String>,
}

/// A unit whose threads get other priorities from time to time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Priorities {
    unit: String,
    every: Distribution,
    next_ns: u64,
}

/// A node as it is stored, without its machine and its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionOfNode {
    pub node: String,
    pub conversation: ConversationState,
    pub place: Place,
}

/// One node's end of a timeline.
pub(super) struct NodeSession {
    pub conversation: Conversation,
    pub place: Place,
    /// Who knows the names of the kernel's functions, if somebody watches.
    pub watching: Option<Arc<Watching>>,
}

impl NodeSession {
    pub(super) fn new(conversation: Conversation) -> NodeSession {
        NodeSession { conversation, place: Place::default(), watching: None }
    }

    /// The next vtime at which the host does something for this node by itself: nothing while it has no power, and while
    /// it is paused nothing that it would have to hear.
    pub(super) fn next_act_ns(&self, node: &Node<AnyEngine>) -> Option<u64> {
        let place = &self.place;
        if !node.is_on() {
            return None;
        }
        if node.is_paused() {
            return place.boot_until_ns;
        }
        let priorities = place.priorities.iter().map(|priorities| priorities.next_ns);
        priorities.chain([place.retry_at_ns, place.boot_until_ns].into_iter().flatten()).min()
    }

    /// From here on it must get ready in [`BOOT_NS_MAX`].
    pub(super) fn limit_boot(&mut self, world_ns: u64) {
        if self.conversation.phase() < Phase::Ready && self.place.boot_until_ns.is_none() {
            self.place.boot_until_ns = Some(world_ns.saturating_add(BOOT_NS_MAX));
        }
    }

    /// Do what is to be done here, when the whole world is at `world_ns`. Without effect when it was done.
    pub(super) fn act(&mut self, node: &mut Node<AnyEngine>, world_ns: u64) {
        if !node.is_on() {
            return;
        }
        match self.conversation.phase() {
            Phase::Mounted => {
                let entropy = draw_entropy(node);
                let now = node.vtime();
                let epoch_ns = i64::try_from(self.conversation.plan().epoch_unix_s)
                    .unwrap_or(0)
                    .saturating_mul(NS_PER_S);
                let since = i64::try_from(now).unwrap_or(i64::MAX)
                    - i64::try_from(node.machine().vtime()).unwrap_or(0);
                self.place.wall_ns = Some(epoch_ns.saturating_add(since));
                self.conversation.join(entropy, now);
            }
            Phase::Ready => {
                if let Some(seed) = self.place.begun {
                    let entropy = draw_entropy(node);
                    self.conversation.begin(seed, entropy, node.vtime());
                }
            }
            _ => {}
        }
        if self.conversation.phase() >= Phase::Ready {
            self.place.boot_until_ns = None;
        } else if self.place.boot_until_ns.is_some_and(|at| at <= world_ns) {
            self.place.boot_until_ns = None;
            self.conversation.boot_took_too_long(world_ns, &show_duration_ns(BOOT_NS_MAX));
        }
        if !node.is_paused() {
            self.change_priorities(node, world_ns);
        }
        self.speak(node);
        if self.place.retry_at_ns.is_some_and(|at| at <= world_ns) {
            self.send(node);
        }
    }

    /// The guest is told that its machine is a copy of another one from here on.
    pub(super) fn new_generation(&self, node: &mut Node<AnyEngine>) {
        let mut generation = [0; 16];
        node.machine_mut().stream(Purpose::Generation).fill_bytes(&mut generation);
        node.machine_mut().new_generation(generation);
    }

    /// Begin under `seed`.
    pub(super) fn begin(&mut self, node: &mut Node<AnyEngine>, seed: u64) {
        self.new_generation(node);
        let entropy = draw_entropy(node);
        self.place.begun = Some(seed);
        self.conversation.begin(seed, entropy, node.vtime());
        self.speak(node);
    }

    /// Take what the guest wrote. Lines are stamped with the vtime of the write that ended them.
    pub(super) fn listen(&mut self, node: &mut Node<AnyEngine>) -> Vec<Event> {
        let clock = node.clock().clone();
        let output = node.machine_mut().output();
        let mut writes: Vec<_> = [Port::History, Port::Log, Port::Control]
            .into_iter()
            .flat_map(|port| output.take_port(port as usize).into_iter().map(move |write| (port, write)))
            .collect();
        for port in [Port::Sdk, Port::Debug, Port::Spare] {
            output.take_port(port as usize);
        }
        // Stable: writes of one port keep their order, and at one vtime history and log come before what the agent says of it.
        writes.sort_by_key(|(_, write)| write.vtime);
        for (port, write) in writes {
            self.conversation.received(port, &write.bytes, clock.world(write.vtime));
        }
        for Note { vtime, event } in node.machine_mut().output().take_notes() {
            self.noticed(clock.world(vtime), event);
        }
        self.conversation.take_events()
    }

    /// What the machine noticed: drivers that broke their device, and the kernel's last words.
    fn noticed(&mut self, vtime_ns: u64, event: NoteEvent) {
        match event {
            NoteEvent::Console { text, .. } => {
                if let Some(at) = text.windows(PANIC.len()).position(|window| window == PANIC) {
                    self.place.last_words = Some(String::from_utf8_lossy(&text[at..]).into_owned());
                }
                let text = String::from_utf8_lossy(&text).into_owned();
                self.conversation.told(vtime_ns, What::Kernel { text });
            }
            NoteEvent::Device { slot, kind, error } => {
                let text = format!("the driver of {kind} (virtio slot {slot}) broke its device: {error}");
                self.conversation.noticed(vtime_ns, builtin::MACHINE_STOPPED, &text);
            }
            NoteEvent::Access(hit) => {
                let symbol = self.watching.as_ref().and_then(|watching| watching.kernel.name(hit.rip));
                self.conversation.told(vtime_ns, What::access(&hit, symbol));
            }
            NoteEvent::Unknown { .. } => {}
        }
    }

    /// The machine came to an end of its own.
    pub(super) fn ended(&mut self, node: &Node<AnyEngine>, end: &End) {
        if std::mem::replace(&mut self.place.end_reported, true) {
            return;
        }
        let asked = self.conversation.is_powering_off() && *end == End::PowerOff;
        let why = match &self.place.last_words {
            Some(words) => format!("{end}: {words}"),
            None => end.to_string(),
        };
        if asked {
            self.conversation.machine_done();
            return;
        }
        let property = match end {
            End::Engine(_) => builtin::ENGINE_FAILURE,
            _ => builtin::MACHINE_STOPPED,
        };
        self.conversation.machine_ended(node.vtime(), property, &why);
    }

    /// Set the guest's `CLOCK_REALTIME` forward or back, as NTP would.
    pub(super) fn step_clock(&mut self, node: &Node<AnyEngine>, step_ns: i64) {
        let wall_ns = self.place.wall_ns.unwrap_or(0).saturating_add(step_ns);
        self.place.wall_ns = Some(wall_ns);
        let now_ns = i64::try_from(node.machine().vtime()).unwrap_or(i64::MAX).saturating_add(wall_ns).max(0);
        // Less than a second.
        let clock = WallClock { seconds: now_ns / NS_PER_S, nanoseconds: (now_ns % NS_PER_S) as u32 };
        self.conversation.fault(Operation::SetClock(clock), node.vtime());
    }

    /// Have the guest's kernel draw its randomness anew.
    pub(super) fn reseed(&mut self, node: &mut Node<AnyEngine>) {
        let entropy = draw_entropy(node);
        self.conversation.fault(Operation::Reseed { entropy: Bytes(entropy) }, node.vtime());
    }

    /// From here on the threads of a unit get drawn priorities, again and again.
    pub(super) fn start_priorities(&mut self, node: &Node<AnyEngine>, unit: &str, every: &Distribution) {
        self.place.priorities.push(Priorities {
            unit: unit.to_owned(),
            every: every.clone(),
            next_ns: node.vtime(),
        });
    }

    /// The threads of a unit are ordinary ones again.
    pub(super) fn stop_priorities(&mut self, unit: &str, world_ns: u64) {
        self.place.priorities.retain(|priorities| priorities.unit != unit);
        if self.conversation.phase() >= Phase::Ready {
            self.conversation.prioritize(unit, vec![0], world_ns);
        }
    }

    fn change_priorities(&mut self, node: &mut Node<AnyEngine>, world_ns: u64) {
        for priorities in self.place.priorities.iter_mut().filter(|priorities| priorities.next_ns <= world_ns)
        {
            let rng = node.machine_mut().stream(Purpose::Priorities);
            let mut drawn = [0; PRIORITIES];
            rng.fill_bytes(&mut drawn);
            // Which of two threads is first is drawn, and so is whether one waits for the other.
            let drawn = drawn.map(|byte| byte % PRIORITY_MAX + 1).to_vec();
            priorities.next_ns = world_ns.saturating_add(priorities.every.draw(rng).max(1));
            // An agent that is slower than this gets fewer of them.
            if !self.conversation.is_prioritizing() {
                self.conversation.prioritize(&priorities.unit, drawn, world_ns);
            }
        }
    }

    /// The machine has lost power: what follows is its next boot, from the restart point if `mounted` says where a
    /// conversation was there.
    pub(super) fn restart(&mut self, mounted: Option<&ConversationState>) {
        self.conversation.restart(mounted);
        self.place = Place { begun: self.place.begun, ..Place::default() };
    }

    /// Say what the conversation has to say now.
    pub(super) fn speak(&mut self, node: &mut Node<AnyEngine>) {
        let outgoing = self.conversation.take_outgoing();
        if !outgoing.is_empty() {
            self.place.unsent.extend(outgoing);
            self.send(node);
            if self.place.unsent.len() > UNSENT_BYTES_MAX {
                self.place.unsent.clear();
                self.place.retry_at_ns = None;
                self.conversation.unusable(node.vtime(), "the agent does not read what it is asked");
            }
        }
    }

    fn send(&mut self, node: &mut Node<AnyEngine>) {
        let unsent = &mut self.place.unsent;
        if !unsent.is_empty() {
            let taken = node.machine_mut().port_input(Port::Control as usize, unsent);
            unsent.drain(..taken.min(unsent.len()));
        }
        self.place.retry_at_ns = (!unsent.is_empty()).then(|| node.vtime() + RETRY_NS);
    }
}

fn draw_entropy(node: &mut Node<AnyEngine>) -> Vec<u8> {
    let mut entropy = vec![0; ENTROPY_BYTES];
    node.machine_mut().stream(Purpose::AgentEntropy).fill_bytes(&mut entropy);
    entropy
}

//! Happens-before between the nodes' events: vector clocks, and the order of event types.
//!
//! An event is before another if it is earlier on the same node, or if messages lead from it to the other. The clock of
//! a node counts, for each node, how many of its events are before the node's next event. Only the last [`WINDOW`]
//! typed events of each node are compared, so an order over a longer distance does not count. Otherwise every type of
//! event would in the end come before every other type.
//!
//! A delivery is matched with its send by the message's number. A number that is unknown or forgotten gives no order. A
//! message without a number counts as sent when it arrives, so only for such messages can a reported order be wrong.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::limits::{SENDS_MAX, TYPES_MAX, WINDOW};

/// Event that happened before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Before {
    /// Number of the event's type.
    pub(super) kind: u32,
    /// True if the event is on another node.
    pub(super) across: bool,
}

/// Orders of types that a branch has reached. Each later type has two sets of earlier types: those on the same node, and
/// those on other nodes.
#[derive(Debug)]
pub(super) struct Orders([[u64; 2]; TYPES_MAX]);

// An event is compared with hundreds of earlier ones, so each set of types is one word.
const _: () = assert!(TYPES_MAX <= u64::BITS as usize, "a type has no bit");

impl Orders {
    /// Returns no orders.
    pub(super) fn none() -> Orders {
        Orders([[0; 2]; TYPES_MAX])
    }

    /// Adds an order. Returns true if it is new. An order with a type number of [`TYPES_MAX`] or more is ignored: only a
    /// damaged state has one.
    pub(super) fn insert(&mut self, first: Before, then: u32) -> bool {
        let sets = usize::try_from(then).ok().and_then(|then| self.0.get_mut(then));
        let (Some([own, other]), Some(bit)) = (sets, 1_u64.checked_shl(first.kind)) else { return false };
        let set = if first.across { other } else { own };
        let is_new = *set & bit == 0;
        *set |= bit;
        is_new
    }
}

/// Timelines of all nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Timelines {
    nodes: Vec<Timeline>,
    /// Vector clocks of sends, by message number.
    sends: BTreeMap<u64, Vec<u64>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Timeline {
    clock: Vec<u64>,
    /// Latest typed events: their numbers on this node, and their types.
    recent: VecDeque<(u64, u32)>,
}

impl Timelines {
    pub(super) fn new(nodes: usize) -> Timelines {
        Timelines {
            nodes: vec![Timeline { clock: vec![0; nodes], recent: VecDeque::new() }; nodes],
            sends: BTreeMap::new(),
        }
    }

    /// True if this belongs to a world with `nodes` nodes.
    pub(super) fn fit(&self, nodes: usize) -> bool {
        self.nodes.len() == nodes
            && self.nodes.iter().map(|node| &node.clock).chain(self.sends.values()).all(|c| c.len() == nodes)
    }

    /// Enters an event of a node. Returns the typed events that happened before it, or nothing if the event has no
    /// type.
    pub(super) fn local(&mut self, node: u16, kind: Option<u32>) -> Vec<Before> {
        let own = usize::from(node);
        let Some(timeline) = self.nodes.get(own) else { return Vec::new() };
        let before = if kind.is_some() { self.before(node, &timeline.clock) } else { Vec::new() };
        if let Some(timeline) = self.nodes.get_mut(own)
            && let Some(count) = timeline.clock.get_mut(own)
        {
            *count += 1;
            if let Some(kind) = kind {
                timeline.recent.push_back((*count, kind));
                if timeline.recent.len() > WINDOW {
                    timeline.recent.pop_front();
                }
            }
        }
        before
    }

    /// Enters a send.
    pub(super) fn send(&mut self, from: u16, message: Option<u64>, kind: Option<u32>) -> Vec<Before> {
        let before = self.local(from, kind);
        if let (Some(message), Some(timeline)) = (message, self.nodes.get(usize::from(from))) {
            self.sends.insert(message, timeline.clock.clone());
            if self.sends.len() > SENDS_MAX {
                self.sends.pop_first();
            }
        }
        before
    }

    /// Enters the arrival of a message.
    pub(super) fn receive(
        &mut self,
        from: u16,
        to: u16,
        message: Option<u64>,
        kind: Option<u32>,
    ) -> Vec<Before> {
        let sent = self.sent(from, message);
        if let (Some(sent), Some(timeline)) = (sent, self.nodes.get_mut(usize::from(to))) {
            for (own, other) in timeline.clock.iter_mut().zip(sent) {
                *own = (*own).max(other);
            }
        }
        self.local(to, kind)
    }

    /// Returns the events before the loss of a message. The loss comes after the send, and before no event.
    pub(super) fn lose(&self, from: u16, message: Option<u64>) -> Vec<Before> {
        self.sent(from, message).map_or_else(Vec::new, |sent| self.before(from, &sent))
    }

    /// Returns the clock at which a message was sent.
    fn sent(&self, from: u16, message: Option<u64>) -> Option<Vec<u64>> {
        match message {
            Some(message) => self.sends.get(&message).cloned(),
            None => self.nodes.get(usize::from(from)).map(|timeline| timeline.clock.clone()),
        }
    }

    /// Returns all remembered events before an event of `node` with this clock.
    fn before(&self, node: u16, clock: &[u64]) -> Vec<Before> {
        let mut before = Vec::new();
        for (index, (timeline, known)) in self.nodes.iter().zip(clock).enumerate() {
            let known = timeline.recent.iter().take_while(|(number, _)| number <= known);
            before.extend(known.map(|(_, kind)| Before { kind: *kind, across: index != usize::from(node) }));
        }
        before
    }
}

//! The happens-before relation between events of nodes, computed with vector clocks, and the orders of event types that
//! follow from it.
//!
//! An event happens before another if it is earlier on the same node, or if messages lead from it to the other event.
//! The vector clock of a node A has one count for each node B: the number of B's events that happen before A's next
//! event.
//!
//! A typed event is an event whose type is tracked. Only the last [`WINDOW`] typed events of each node are compared, so
//! orders over a longer distance are ignored. Otherwise every type of event would eventually happen before every other
//! type.
//!
//! A delivery is matched with its send by the message's number. If the send of this number is unknown or forgotten, the
//! delivery gives no order. A message without a number is treated as sent at its arrival. Only orders from messages
//! without numbers can be wrong.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::limits::{SENDS_MAX, TYPES_MAX, WINDOW};

/// Type of an event that happened before another event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Before {
    /// Number of the event's type.
    pub(super) kind: u32,
    /// True if the event happened on another node.
    pub(super) across: bool,
}

/// Orders of event types that a branch has reached. For each later type, the first set contains the earlier types on
/// the same node, and the second set contains the earlier types on other nodes.
#[derive(Debug)]
pub(super) struct Orders([[u64; 2]; TYPES_MAX]);

// Each event is compared with hundreds of earlier events. For speed, each set of types fits in one machine word.
const _: () = assert!(TYPES_MAX <= u64::BITS as usize, "a type has no bit");

impl Orders {
    /// Returns an empty set of orders.
    pub(super) fn none() -> Orders {
        Orders([[0; 2]; TYPES_MAX])
    }

    /// Adds an order. Returns true if the order is new. Ignores type numbers of [`TYPES_MAX`] or more. Only
    /// damaged stored data contains such numbers.
    pub(super) fn insert(&mut self, first: Before, then: u32) -> bool {
        let sets = usize::try_from(then).ok().and_then(|then| self.0.get_mut(then));
        let (Some([own, other]), Some(bit)) = (sets, 1_u64.checked_shl(first.kind)) else { return false };
        let set = if first.across { other } else { own };
        let is_new = *set & bit == 0;
        *set |= bit;
        is_new
    }
}

/// Vector clocks and latest events of all nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Timelines {
    nodes: Vec<Timeline>,
    /// Vector clocks of sent messages, by message number.
    sends: BTreeMap<u64, Vec<u64>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Timeline {
    clock: Vec<u64>,
    /// Latest typed events: number of the event on this node, and number of its type.
    recent: VecDeque<(u64, u32)>,
}

impl Timelines {
    pub(super) fn new(nodes: usize) -> Timelines {
        Timelines {
            nodes: vec![Timeline { clock: vec![0; nodes], recent: VecDeque::new() }; nodes],
            sends: BTreeMap::new(),
        }
    }

    /// True if the clocks are those of a world with `nodes` nodes.
    pub(super) fn fit(&self, nodes: usize) -> bool {
        self.nodes.len() == nodes
            && self.nodes.iter().map(|node| &node.clock).chain(self.sends.values()).all(|c| c.len() == nodes)
    }

    /// Records an event of a node. Returns the remembered typed events that happened before it. Returns nothing if the
    /// new event has no type or the node is unknown.
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

    /// Records that a message was sent. Returns what [`Timelines::local`] returns.
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

    /// Records that a message arrived. Returns what [`Timelines::local`] returns.
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

    /// Returns the remembered events that happened before the loss of a message: the message's send, and all events
    /// before the send. The loss itself is not recorded, because no node notices it.
    pub(super) fn lose(&self, from: u16, message: Option<u64>) -> Vec<Before> {
        self.sent(from, message).map_or_else(Vec::new, |sent| self.before(from, &sent))
    }

    /// Returns the vector clock at which a message was sent, or `None` if it is unknown.
    fn sent(&self, from: u16, message: Option<u64>) -> Option<Vec<u64>> {
        match message {
            Some(message) => self.sends.get(&message).cloned(),
            None => self.nodes.get(usize::from(from)).map(|timeline| timeline.clock.clone()),
        }
    }

    /// Returns all remembered events that happened before an event of `node` with this clock.
    fn before(&self, node: u16, clock: &[u64]) -> Vec<Before> {
        let mut before = Vec::new();
        for (index, (timeline, known)) in self.nodes.iter().zip(clock).enumerate() {
            let known = timeline.recent.iter().take_while(|(number, _)| number <= known);
            before.extend(known.map(|(_, kind)| Before { kind: *kind, across: index != usize::from(node) }));
        }
        before
    }
}

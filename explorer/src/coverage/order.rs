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

/// Types of the events that happened before another event. Bit n of a set stands for the type with number n. Type numbers
/// of [`TYPES_MAX`] or more are ignored. Only damaged stored data contains such numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Before {
    /// Types of events on the same node.
    pub(super) own: u64,
    /// Types of events on other nodes.
    pub(super) other: u64,
}

// Each event is compared with hundreds of earlier events. For speed, each set of types fits in one machine word.
const _: () = assert!(TYPES_MAX <= u64::BITS as usize, "a type has no bit");

/// Orders of event types that a branch has reached: for each later type, the earlier types.
#[derive(Debug)]
pub(super) struct Orders([Before; TYPES_MAX]);

impl Orders {
    /// Returns an empty set of orders.
    pub(super) fn none() -> Orders {
        Orders([Before::default(); TYPES_MAX])
    }

    /// Adds the orders of the types in `first` before the type `then`. Returns the types of `first` whose order is new.
    pub(super) fn insert(&mut self, first: Before, then: u32) -> Before {
        let known = usize::try_from(then).ok().and_then(|then| self.0.get_mut(then));
        let Some(known) = known else { return Before::default() };
        let new = Before { own: first.own & !known.own, other: first.other & !known.other };
        known.own |= first.own;
        known.other |= first.other;
        new
    }
}

/// Returns the numbers of the types in a set.
pub(super) fn types_in(mut set: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (lowest < u64::BITS).then_some(lowest)
    })
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

    /// Records an event of a node. Returns the types of remembered events that happened before it, or no types if the
    /// new event has no type or the node is unknown.
    pub(super) fn local(&mut self, node: u16, kind: Option<u32>) -> Before {
        let own = usize::from(node);
        let Some(timeline) = self.nodes.get(own) else { return Before::default() };
        let before = if kind.is_some() { self.before(node, &timeline.clock) } else { Before::default() };
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
    pub(super) fn send(&mut self, from: u16, message: Option<u64>, kind: Option<u32>) -> Before {
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
    pub(super) fn receive(&mut self, from: u16, to: u16, message: Option<u64>, kind: Option<u32>) -> Before {
        let sent = self.sent(from, message);
        if let (Some(sent), Some(timeline)) = (sent, self.nodes.get_mut(usize::from(to))) {
            for (own, other) in timeline.clock.iter_mut().zip(sent) {
                *own = (*own).max(other);
            }
        }
        self.local(to, kind)
    }

    /// Returns the types of remembered events that happened before the loss of a message: the message's send, and all
    /// events before the send. The loss itself is not recorded, because no node notices it.
    pub(super) fn lose(&self, from: u16, message: Option<u64>) -> Before {
        self.sent(from, message).map_or_else(Before::default, |sent| self.before(from, &sent))
    }

    /// Returns the vector clock at which a message was sent, or `None` if it is unknown.
    fn sent(&self, from: u16, message: Option<u64>) -> Option<Vec<u64>> {
        match message {
            Some(message) => self.sends.get(&message).cloned(),
            None => self.nodes.get(usize::from(from)).map(|timeline| timeline.clock.clone()),
        }
    }

    /// Returns the types of all remembered events that happened before an event of `node` with this clock.
    fn before(&self, node: u16, clock: &[u64]) -> Before {
        let mut before = Before::default();
        for (index, (timeline, known)) in self.nodes.iter().zip(clock).enumerate() {
            let mut types = 0;
            for (number, kind) in &timeline.recent {
                if number > known {
                    break;
                }
                if *kind < u64::BITS {
                    types |= 1 << kind;
                }
            }
            if index == usize::from(node) {
                before.own |= types;
            } else {
                before.other |= types;
            }
        }
        before
    }
}

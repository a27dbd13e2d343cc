//! Happens-before between the nodes' events: vector clocks, and which types of events came before which.
//!
//! An event is before another if it is earlier on the same node, or if messages lead from it to the other. The clock of a
//! node counts, for each node, how many of its events are before what comes next. Looked back at are the last [`WINDOW`]
//! typed events of each node: an order that takes longer does not count, or else in the end everything would have
//! been before everything.
//!
//! A message's send is known by the message's number. One that is not known (any more) gives no order: an order that is
//! reported is one.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::limits::{SENDS_MAX, WINDOW};

/// An event that is before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Before {
    /// Its type.
    pub(super) kind: u32,
    /// It is on another node.
    pub(super) across: bool,
}

/// The nodes' timelines.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Timelines {
    nodes: Vec<Timeline>,
    /// Clocks at which messages were sent, by number.
    sends: BTreeMap<u64, Vec<u64>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Timeline {
    clock: Vec<u64>,
    /// The latest typed events: their numbers on this node, and types.
    recent: VecDeque<(u64, u32)>,
}

impl Timelines {
    pub(super) fn new(nodes: usize) -> Timelines {
        Timelines {
            nodes: vec![Timeline { clock: vec![0; nodes], recent: VecDeque::new() }; nodes],
            sends: BTreeMap::new(),
        }
    }

    /// Whether they are those of a world with so many nodes.
    pub(super) fn fit(&self, nodes: usize) -> bool {
        self.nodes.len() == nodes
            && self.nodes.iter().map(|node| &node.clock).chain(self.sends.values()).all(|c| c.len() == nodes)
    }

    /// Something happens on a node: what was before it.
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

    /// A message is sent.
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

    /// A message comes.
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

    /// A message is lost: something after its send, and before nothing.
    pub(super) fn lose(&self, from: u16, message: Option<u64>) -> Vec<Before> {
        self.sent(from, message).map_or_else(Vec::new, |sent| self.before(from, &sent))
    }

    /// The clock with which a message was sent.
    fn sent(&self, from: u16, message: Option<u64>) -> Option<Vec<u64>> {
        match message {
            Some(message) => self.sends.get(&message).cloned(),
            None => self.nodes.get(usize::from(from)).map(|timeline| timeline.clock.clone()),
        }
    }

    /// All that is before what comes on a node with this clock.
    fn before(&self, node: u16, clock: &[u64]) -> Vec<Before> {
        let mut before = Vec::new();
        for (index, (timeline, known)) in self.nodes.iter().zip(clock).enumerate() {
            let known = timeline.recent.iter().take_while(|(number, _)| number <= known);
            before.extend(known.map(|(_, kind)| Before { kind: *kind, across: index != usize::from(node) }));
        }
        before
    }
}

//! Queue of events. Their order is the same whether a timeline runs in one piece or in several.
//!
//! Nodes run in turns, so a node can be ahead of the others. The events of this node wait until the whole world has
//! reached their vtime. Events at the same vtime are ordered by node, and events of Everett's own actions come last.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::world::event::Event;

/// Events that the caller has not taken yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reporting {
    /// Events from before the moment from which this timeline continues. Another timeline has already reported them.
    again: Vec<Event>,
    waiting: Vec<(Source, Event)>,
}

/// Source of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Source {
    /// Guest of the node with this index.
    Node(usize),
    /// Action of Everett, when all nodes had reached its vtime.
    Host,
}

impl Reporting {
    /// Adds events caused by a guest.
    pub(super) fn of_node(&mut self, node: usize, events: Vec<Event>) {
        self.waiting.extend(events.into_iter().map(|event| (Source::Node(node), event)));
    }

    /// Adds events caused by Everett's own actions.
    pub(super) fn of_host(&mut self, events: impl IntoIterator<Item = Event>) {
        self.waiting.extend(events.into_iter().map(|event| (Source::Host, event)));
    }

    /// Adds events from before the moment from which this timeline continues. The next [`Reporting::take`] returns them
    /// before all others.
    pub(super) fn again(&mut self, events: &[Event]) {
        self.again.extend_from_slice(events);
    }

    /// Takes all events before `end_ns`, in order. The caller guarantees that no further event will happen before
    /// `end_ns`.
    pub(super) fn take(&mut self, end_ns: u64) -> Vec<Event> {
        if self.waiting.is_empty() {
            return std::mem::take(&mut self.again);
        }
        let (mut reported, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(_, event)| event.vtime_ns < end_ns);
        self.waiting = waiting;
        // The sort is stable, so the events of one source stay in order.
        reported.sort_by_key(|(source, event)| (event.vtime_ns, *source));
        let mut events = std::mem::take(&mut self.again);
        events.extend(reported.into_iter().map(|(_, event)| event));
        events
    }

    /// Returns the events from `end_ns` on, for storing with the world.
    pub(super) fn from(&self, end_ns: u64) -> Reporting {
        let later = self.waiting.iter().filter(|(_, event)| event.vtime_ns >= end_ns);
        Reporting { again: Vec::new(), waiting: later.cloned().collect() }
    }

    /// Returns true if no event belongs to a node with index `nodes` or higher.
    pub(super) fn is_of(&self, nodes: usize) -> bool {
        self.waiting.iter().all(|(source, _)| !matches!(source, Source::Node(node) if *node >= nodes))
    }
}

/// Serializes events as JSON text, because their serde form needs a self-describing format. Postcard is not
/// self-describing.
impl Serialize for Reporting {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serde_json::to_string(&self.waiting).map_err(S::Error::custom)?.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Reporting {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Reporting, D::Error> {
        let text = String::deserialize(from)?;
        let waiting = serde_json::from_str(&text).map_err(D::Error::custom)?;
        Ok(Reporting { again: Vec::new(), waiting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::event::What;

    fn event(vtime_ns: u64, node: &str) -> Event {
        Event { vtime_ns, node: node.to_owned(), what: What::Ready }
    }

    #[test]
    fn a_divided_run_reports_events_in_the_same_order() {
        let mut whole = Reporting::default();
        whole.of_node(0, vec![event(3, "a"), event(9, "a")]);
        whole.of_node(1, vec![event(2, "b"), event(3, "b")]);
        whole.of_host([event(3, "")]);
        let reported = whole.take(u64::MAX);
        assert_eq!(reported, [event(2, "b"), event(3, "a"), event(3, "b"), event(3, ""), event(9, "a")]);

        let mut cut = Reporting::default();
        cut.again(&reported[..1]);
        cut.of_node(1, vec![event(3, "b")]);
        let mut pieces = cut.take(3);
        cut.of_host([event(3, "")]);
        cut.of_node(0, vec![event(3, "a"), event(9, "a")]);
        let stored = postcard::to_stdvec(&cut.from(3)).unwrap();
        let mut cut: Reporting = postcard::from_bytes(&stored).unwrap();
        assert!(cut.is_of(2) && !cut.is_of(1));
        pieces.append(&mut cut.take(4));
        pieces.append(&mut cut.take(u64::MAX));
        assert_eq!(pieces, reported);
    }
}

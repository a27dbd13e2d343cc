//! Queue of scheduled events (timers and device completions), in the order of (vtime, sequence).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Identity of a scheduled event, which is also its position in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EventId {
    /// Time at which the event is due, in nanoseconds of vtime.
    pub vtime: u64,
    /// Sequence number, in the order of scheduling. It orders events of equal vtime.
    pub sequence: u64,
}

/// Scheduled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// The LAPIC timer expires.
    LapicTimer,
    /// The RTC has its next alarm, update or periodic interrupt.
    Rtc,
    /// A virtio device finishes an operation, which its token identifies.
    Virtio {
        /// The device's slot.
        slot: u8,
        /// The device's own number for the request or frame.
        token: u64,
    },
    /// The HPET's first timer matches.
    Hpet,
}

/// The queue of scheduled events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventQueue {
    next_sequence: u64,
    due: BTreeMap<EventId, Event>,
}

impl EventQueue {
    /// Schedules an event at an absolute vtime, in nanoseconds.
    pub fn schedule(&mut self, vtime: u64, event: Event) -> EventId {
        let id = EventId { vtime, sequence: self.next_sequence };
        self.next_sequence += 1;
        self.due.insert(id, event);
        id
    }
    /// Removes an event. Does nothing if the event was already taken.
    pub fn cancel(&mut self, id: EventId) {
        self.due.remove(&id);
    }
    /// Returns the vtime of the next event.
    pub fn next_vtime(&self) -> Option<u64> {
        self.due.first_key_value().map(|(id, _)| id.vtime)
    }
    /// Removes and returns the next event that is due at `now` or before.
    pub fn pop_due(&mut self, now: u64) -> Option<(EventId, Event)> {
        let entry = self.due.first_entry()?;
        (entry.key().vtime <= now).then(|| entry.remove_entry())
    }
    /// Returns the number of scheduled events.
    pub fn len(&self) -> usize {
        self.due.len()
    }
    /// True if no event is scheduled.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_the_order_of_scheduling() {
        let mut queue = EventQueue::default();
        let virtio = |token| Event::Virtio { slot: 0, token };
        queue.schedule(20, virtio(1));
        queue.schedule(10, virtio(2));
        let gone = queue.schedule(10, Event::Rtc);
        queue.schedule(10, virtio(3));
        queue.cancel(gone);
        queue.cancel(gone);
        assert_eq!(queue.next_vtime(), Some(10));
        assert_eq!(queue.pop_due(9), None);
        let order: Vec<Event> = std::iter::from_fn(|| queue.pop_due(20).map(|(_, e)| e)).collect();
        assert_eq!(order, [virtio(2), virtio(3), virtio(1)]);
        assert!(queue.is_empty());
    }
}

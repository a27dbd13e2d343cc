//! What will happen by itself: timers and device completions, in order of (vtime, sequence).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Names a scheduled event, and is its place in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EventId {
    /// When, in nanoseconds of vtime.
    pub vtime: u64,
    /// Order among equals: the order of scheduling.
    pub sequence: u64,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// The LAPIC timer expires.
    LapicTimer,
    /// The RTC's next alarm, update or periodic interrupt.
    Rtc,
    /// A virtio device finishes something; the token is the device's.
    Virtio {
        /// Which slot.
        slot: u8,
        /// Which of its requests.
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
    /// Schedule at an absolute vtime.
    pub fn schedule(&mut self, vtime: u64, event: Event) -> EventId {
        let id = EventId { vtime, sequence: self.next_sequence };
        self.next_sequence += 1;
        self.due.insert(id, event);
        id
    }
    /// Forget an event. One that already happened is forgotten already.
    pub fn cancel(&mut self, id: EventId) {
        self.due.remove(&id);
    }
    /// When the next event is due.
    pub fn next_vtime(&self) -> Option<u64> {
        self.due.first_key_value().map(|(id, _)| id.vtime)
    }
    /// Take the next event that is due at `now` or before.
    pub fn pop_due(&mut self, now: u64) -> Option<(EventId, Event)> {
        let entry = self.due.first_entry()?;
        (entry.key().vtime <= now).then(|| entry.remove_entry())
    }
    /// Scheduled events.
    pub fn len(&self) -> usize {
        self.due.len()
    }
    /// Whether nothing is scheduled.
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

//! Frames on their way: in a card's queue, on a link, held by a fault, or arrived and not yet fetched.
//!
//! The counts against the bounds and the queues follow the vtimes of calls to the wire, never the times of fetching:
//! only `settle` discounts frames that have left a queue or arrived.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::Delivery;
use super::config::Topology;
use super::link::{Direction, Item};
use super::switch::HEADER_BYTES;
use crate::virtio::net::FRAME_BYTES_MAX;

/// Maximum number of frames on their way, including those held at their sender's end. More are dropped. Frames held at
/// their receiver's end have a bound of their own, of the same size.
pub const FRAMES_MAX: usize = 65_536;
/// Maximum bytes of frames on their way. As for [`FRAMES_MAX`], frames held at their receiver's end have a bound of
/// their own, of the same size. More are dropped.
pub const BYTES_MAX: u64 = 64 << 20;
/// Maximum number of arrived frames that were not fetched. More are dropped, but the wire's owner normally fetches
/// them.
pub const READY_FRAMES_MAX: usize = 1 << 20;

/// Frames that a fault holds, in the order in which they were put on their way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Held {
    items: BTreeMap<u64, Item>,
    bytes: u64,
}

impl Held {
    /// Holds an item. Returns it as the error if there is no room.
    pub(super) fn push(&mut self, item: Item) -> Result<(), Item> {
        let bytes = self.bytes.saturating_add(item.bytes.len() as u64);
        if self.items.len() >= FRAMES_MAX || bytes > BYTES_MAX {
            return Err(item);
        }
        self.bytes = bytes;
        self.items.insert(item.seq, item);
        Ok(())
    }

    /// Takes the items for which `meant` is true, in order.
    pub(super) fn take(&mut self, meant: impl Fn(&Item) -> bool) -> Vec<Item> {
        let taken: Vec<Item> =
            self.items.extract_if(.., |_, item| meant(item)).map(|(_, item)| item).collect();
        self.bytes = self.bytes.saturating_sub(taken.iter().map(|item| item.bytes.len() as u64).sum());
        taken
    }

    /// Marks items as having left their cards unless the cards are clogged. Other faults may hold them further, after
    /// the card.
    pub(super) fn leave_cards(&mut self, clogged: impl Fn(u8) -> bool) {
        for item in self.items.values_mut() {
            item.in_card &= clogged(item.from);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.items.values()
    }

    fn is_sound(&self) -> bool {
        self.items.iter().all(|(&seq, item)| item.seq == seq)
            && self.items.len() <= FRAMES_MAX
            && self.bytes <= BYTES_MAX
            && self.bytes == self.iter().map(|item| item.bytes.len() as u64).sum::<u64>()
    }
}

/// Frame that will leave a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Departure {
    direction: u16,
    bytes: u32,
}

/// All frames on their way (see the module).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InFlight {
    directions: Vec<Direction>,
    /// Items on their way, by arrival vtime and sequence number.
    way: BTreeMap<(u64, u64), Item>,
    /// Bytes of each item that counts against the bounds, by arrival vtime and sequence number.
    counted: BTreeMap<(u64, u64), u32>,
    counted_bytes: u64,
    /// Frames that count against the queues, by the vtime at which they leave, and sequence number.
    departures: BTreeMap<(u64, u64), Departure>,
    /// Items held at their sender's end.
    pub(super) held_back: Held,
    /// Items held at their receiver's end.
    pub(super) held_up: Held,
    /// Arrived frames that were not fetched, in order.
    pub(super) ready: VecDeque<Delivery>,
}

impl InFlight {
    pub(super) fn new(directions: usize) -> InFlight {
        InFlight { directions: vec![Direction::default(); directions], ..InFlight::default() }
    }

    /// Returns the bytes in a direction's queue.
    pub(super) fn queued(&self, direction: usize) -> u64 {
        self.directions.get(direction).map_or(0, |direction| direction.queued)
    }

    /// True if one more frame of `bytes` bytes may be put on its way.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let total = self.counted_bytes.saturating_add(self.held_back.bytes).saturating_add(bytes as u64);
        self.counted.len() + self.held_back.items.len() < FRAMES_MAX && total <= BYTES_MAX
    }

    /// Discounts the frames that have left a queue or arrived by `at`.
    pub(super) fn settle(&mut self, at: u64) {
        while let Some(first) = self.counted.first_entry()
            && first.key().0 <= at
        {
            self.counted_bytes = self.counted_bytes.saturating_sub(first.remove().into());
        }
        while let Some(first) = self.departures.first_entry()
            && first.key().0 <= at
        {
            let gone = first.remove();
            self.unqueue(&gone);
        }
    }

    fn unqueue(&mut self, gone: &Departure) {
        if let Some(direction) = self.directions.get_mut(usize::from(gone.direction)) {
            direction.queued = direction.queued.saturating_sub(gone.bytes.into());
        }
    }

    /// Puts an item into its direction's queue at `at`.
    pub(super) fn launch(&mut self, mut item: Item, at: u64, direction: usize, bits_per_s: u64) {
        if let Some(state) = self.directions.get_mut(direction) {
            let depart = state.sent(&item, at, bits_per_s);
            let due = state.depart(&mut item, depart);
            self.leaves(&item, direction);
            self.put(due, item);
        }
    }

    fn leaves(&mut self, item: &Item, direction: usize) {
        let departure = Departure { direction: direction as u16, bytes: item.bytes.len() as u32 };
        self.departures.insert((item.depart, item.seq), departure);
    }

    /// Puts an item on its way, to arrive at `due`.
    pub(super) fn put(&mut self, due: u64, item: Item) {
        self.counted.insert((due, item.seq), item.bytes.len() as u32);
        self.counted_bytes = self.counted_bytes.saturating_add(item.bytes.len() as u64);
        self.way.insert((due, item.seq), item);
    }

    /// Takes the next item that arrives at or before `until`, with its vtime of arrival.
    pub(super) fn arrive(&mut self, until: u64) -> Option<(u64, Item)> {
        let first = self.way.first_entry().filter(|first| first.key().0 <= until)?;
        let ((due, _), item) = first.remove_entry();
        Some((due, item))
    }

    /// Iterates over the items on their way, by their vtimes of arrival.
    pub(super) fn way(&self) -> impl Iterator<Item = (u64, &Item)> {
        self.way.iter().map(|(&(due, _), item)| (due, item))
    }

    fn take(&mut self, meant: impl Fn(u64, &Item) -> bool) -> Vec<(u64, Item)> {
        let taken = self.way.extract_if(.., |&(due, _), item| meant(due, item));
        let taken: Vec<(u64, Item)> = taken.map(|((due, _), item)| (due, item)).collect();
        for (due, item) in &taken {
            if let Some(bytes) = self.counted.remove(&(*due, item.seq)) {
                self.counted_bytes = self.counted_bytes.saturating_sub(bytes.into());
            }
        }
        taken
    }

    /// Takes the items that are still in the queues of these directions at `at`, in each queue's order, and empties the
    /// queues.
    pub(super) fn take_queued(
        &mut self,
        topology: &Topology,
        meant: impl Fn(u8, u8) -> bool,
        at: u64,
    ) -> BTreeMap<usize, Vec<Item>> {
        let mut queued: Vec<Item> = self
            .take(|_, item| item.depart > at && meant(item.from, item.to))
            .into_iter()
            .map(|(_, item)| item)
            .collect();
        queued.sort_unstable_by_key(|item| (item.depart, item.seq));
        let mut queues: BTreeMap<usize, Vec<Item>> = BTreeMap::new();
        for item in queued {
            if let Some(gone) = self.departures.remove(&(item.depart, item.seq)) {
                self.unqueue(&gone);
            }
            queues.entry(topology.direction(item.from, item.to)).or_default().push(item);
        }
        for &direction in queues.keys() {
            if let Some(state) = self.directions.get_mut(direction) {
                *state = Direction { free_at: at, queued: state.queued, ..Direction::default() };
            }
        }
        // Items that have already left a queue remain ahead of those that leave it from now on.
        for (&(due, _), item) in &self.way {
            let direction = topology.direction(item.from, item.to);
            if queues.contains_key(&direction)
                && let Some(state) = self.directions.get_mut(direction)
            {
                state.pass(item, due);
            }
        }
        queues
    }

    /// Refills a direction's empty queue with these items, in this order, at another bandwidth.
    /// The first item was being sent: it leaves no later than it would have.
    pub(super) fn requeue(&mut self, direction: usize, items: Vec<Item>, at: u64, bits_per_s: u64) {
        for (i, mut item) in items.into_iter().enumerate() {
            let Some(state) = self.directions.get_mut(direction) else { continue };
            let sent = state.sent(&item, at, bits_per_s);
            let depart = if i == 0 { sent.min(item.depart) } else { sent };
            let due = state.depart(&mut item, depart);
            self.leaves(&item, direction);
            self.put(due, item);
        }
    }

    /// Delays the items in order on these directions so that they arrive no earlier than `floor`.
    pub(super) fn not_before(&mut self, topology: &Topology, directions: &BTreeSet<usize>, floor: u64) {
        let meant = |item: &Item| directions.contains(&topology.direction(item.from, item.to));
        for (_, mut item) in self.take(|due, item| due < floor && item.aside.is_none() && meant(item)) {
            item.on_time = item.on_time.max(floor);
            self.put(floor, item);
        }
        for &direction in directions {
            if let Some(state) = self.directions.get_mut(direction) {
                state.line = state.line.max(floor);
                state.late_line = state.late_line.max(floor);
            }
        }
    }

    /// True if a wire with this topology can be in this state. Its sequence numbers are below `items`, its frames below
    /// `frames`.
    pub(super) fn is_sound(&self, topology: &Topology, items: u64, frames: u64) -> bool {
        let ports = topology.ports().len();
        let bytes = |items: &mut dyn Iterator<Item = usize>| items.sum::<usize>() as u64;
        let item = |item: &Item| {
            usize::from(item.from.max(item.to)) < ports
                && item.from != item.to
                && (HEADER_BYTES..=FRAME_BYTES_MAX).contains(&item.bytes.len())
                && item.seq < items
                && item.frame < frames
        };
        let mut queued = vec![0; self.directions.len()];
        let known = self.departures.values().all(|departure| {
            let queue = queued.get_mut(usize::from(departure.direction));
            queue.map(|queue| *queue += u64::from(departure.bytes)).is_some()
        });
        self.directions.len() == topology.directions()
            && known
            && self.directions.iter().map(|direction| direction.queued).eq(queued)
            && self.way.iter().all(|(&(_, seq), on_way)| seq == on_way.seq && item(on_way))
            && self.held_back.iter().chain(self.held_up.iter()).all(item)
            && self.held_back.is_sound()
            && self.held_up.is_sound()
            && self.counted_bytes == bytes(&mut self.counted.values().map(|&bytes| bytes as usize))
            && self.counted_bytes <= 2 * BYTES_MAX
            && self.counted.len().max(self.way.len()).max(self.departures.len()) <= 2 * FRAMES_MAX
            && self.ready.len() <= READY_FRAMES_MAX
            && self.ready.iter().all(|ready| usize::from(ready.port) < ports && ready.frame < frames)
    }
}

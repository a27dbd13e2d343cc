//! Frames inside the wire: in a card's queue, on a link, held by a fault, or arrived and not yet taken by the wire's
//! owner (a world or a test).
//!
//! The counts of frames on their way and of bytes in queues depend only on the vtimes of calls to the wire, and not on
//! the times at which the owner takes frames. Only `settle` subtracts frames that have left a queue or arrived.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::Delivery;
use super::config::Topology;
use super::link::{Direction, Item};
use super::switch::HEADER_BYTES;
use crate::virtio::net::FRAME_BYTES_MAX;

/// Maximum number of frames on their way, including frames that faults hold at their sender's end. Further frames are
/// dropped. A separate bound of the same size applies to frames that faults hold at their receiver's end.
pub const FRAMES_MAX: usize = 65_536;
/// Maximum bytes of frames on their way. As for [`FRAMES_MAX`], a separate bound of the same size applies to frames
/// that faults hold at their receiver's end. Further frames are dropped.
pub const BYTES_MAX: u64 = 64 << 20;
/// Maximum number of arrived frames that the wire's owner has not taken. Further frames are dropped. The bound matters
/// only if the owner stops taking frames.
pub const READY_FRAMES_MAX: usize = 1 << 20;

/// Items (frames and extra copies) that faults hold, by sequence number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Held {
    items: BTreeMap<u64, Item>,
    bytes: u64,
}

impl Held {
    /// Holds an item. If there is no room, returns the item as the error.
    pub(super) fn push(&mut self, item: Item) -> Result<(), Item> {
        let bytes = self.bytes.saturating_add(item.bytes.len() as u64);
        if self.items.len() >= FRAMES_MAX || bytes > BYTES_MAX {
            return Err(item);
        }
        self.bytes = bytes;
        self.items.insert(item.seq, item);
        Ok(())
    }

    /// Takes the items for which `meant` is true, in the order of sequence numbers.
    pub(super) fn take(&mut self, meant: impl Fn(&Item) -> bool) -> Vec<Item> {
        let taken: Vec<Item> =
            self.items.extract_if(.., |_, item| meant(item)).map(|(_, item)| item).collect();
        self.bytes = self.bytes.saturating_sub(taken.iter().map(|item| item.bytes.len() as u64).sum());
        taken
    }

    /// Marks items as having left their cards. Cards for which `clogged` is true keep their items, because a fault
    /// stops these cards from sending. Other faults may still hold the marked items behind the card.
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

/// A frame that will leave a queue, with its direction and length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Departure {
    direction: u16,
    bytes: u32,
}

/// All frames inside the wire.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InFlight {
    directions: Vec<Direction>,
    /// Items on their way. The key is the vtime of arrival and the sequence number.
    way: BTreeMap<(u64, u64), Item>,
    /// Length of each item that [`FRAMES_MAX`] and [`BYTES_MAX`] count. The key is the vtime of arrival and the
    /// sequence number.
    counted: BTreeMap<(u64, u64), u32>,
    counted_bytes: u64,
    /// Frames that still occupy a queue. The key is the vtime at which the frame leaves the queue, and its sequence
    /// number.
    departures: BTreeMap<(u64, u64), Departure>,
    /// Items that faults hold at their sender's end.
    pub(super) held_back: Held,
    /// Items that faults hold at their receiver's end.
    pub(super) held_up: Held,
    /// Arrived frames that the owner has not taken, in the order of arrival.
    pub(super) ready: VecDeque<Delivery>,
}

impl InFlight {
    pub(super) fn new(directions: usize) -> InFlight {
        InFlight { directions: vec![Direction::default(); directions], ..InFlight::default() }
    }

    pub(super) fn queued(&self, direction: usize) -> u64 {
        self.directions.get(direction).map_or(0, |direction| direction.queued)
    }

    /// True if the bounds allow one more frame of `bytes` bytes.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let total = self.counted_bytes.saturating_add(self.held_back.bytes).saturating_add(bytes as u64);
        self.counted.len() + self.held_back.items.len() < FRAMES_MAX && total <= BYTES_MAX
    }

    /// Subtracts the frames that have left a queue or arrived by `at` from the counts.
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

    /// Puts an item into its direction's queue at vtime `at`, and schedules its arrival.
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

    /// Puts an item on its way. It arrives at `due`.
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

    /// Iterates over the items on their way, in the order of arrival, with their vtimes of arrival.
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

    /// Takes the items that are still in the queues of these directions at `at`, in the order of each queue. The queues
    /// are then empty.
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
        // Items that have already left a queue must stay ahead of items that leave it later.
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

    /// Refills a direction's empty queue with these items, in this order, at another bandwidth. The first item was
    /// already being sent. It leaves no later than it would have left at the old bandwidth.
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

    /// Delays items on these directions so that they arrive at `floor` or later. Keeps their order.
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

    /// True if a wire with this topology can be in this state. Its sequence numbers must be below `items`, and its
    /// frame numbers below `frames`.
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

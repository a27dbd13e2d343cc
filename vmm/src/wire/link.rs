//! One direction of a link: a card's queue, the order of what left it, and when it arrives.
//!
//! A frame waits in the queue for those before it, takes its bits' time to be sent, and is then on its way for the latency
//! that was drawn for it. Nothing overtakes: what would arrive before an earlier frame arrives with it. Frames that faults
//! make later are a second such line behind the first, so that what is sent once the fault has ended need not wait for them.
//! Reordered frames and extra copies are in neither.

use serde::{Deserialize, Serialize};

const NS_PER_S: u128 = 1_000_000_000;

/// A frame on its way from one port to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Item {
    /// Its place in the order of everything that was ever put on its way.
    pub(super) seq: u64,
    /// The frame's number.
    pub(super) frame: u64,
    pub(super) from: u8,
    pub(super) to: u8,
    /// When it was sent.
    pub(super) sent_at: u64,
    /// It is an extra copy.
    pub(super) copy: bool,
    /// Bits of it were flipped.
    pub(super) flipped: bool,
    /// Its sender's card was clogged when it was sent: it has not left it.
    pub(super) in_card: bool,
    /// What was drawn for it: see `Fate`.
    pub(super) transit: u64,
    pub(super) late: Option<u64>,
    pub(super) aside: Option<u64>,
    /// When its last bit was sent.
    pub(super) depart: u64,
    /// When it would arrive but for faults.
    pub(super) on_time: u64,
    pub(super) bytes: Vec<u8>,
}

/// What a direction remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Direction {
    /// When the last bit in the queue will have been sent.
    pub(super) free_at: u64,
    /// Bytes in the queue, the frame that is being sent among them.
    pub(super) queued: u64,
    /// When the last frame in order arrives.
    pub(super) line: u64,
    /// When the last frame in order arrives that faults made later.
    pub(super) late_line: u64,
}

impl Direction {
    /// When the item's last bit is sent, if it gets into the queue at `at`.
    pub(super) fn sent(&self, item: &Item, at: u64, bits_per_s: u64) -> u64 {
        self.free_at.max(at).saturating_add(sending_ns(item.bytes.len(), bits_per_s))
    }

    /// The item is in the queue, and its last bit is sent at `depart`. Returns when it arrives.
    pub(super) fn depart(&mut self, item: &mut Item, depart: u64) -> u64 {
        self.queued = self.queued.saturating_add(item.bytes.len() as u64);
        self.free_at = depart;
        item.depart = depart;
        item.on_time = depart.saturating_add(item.transit).max(self.line);
        let due = match item.late {
            Some(late) => item.on_time.saturating_add(late).max(self.late_line),
            None => item.on_time,
        };
        match item.aside {
            Some(aside) => due.saturating_add(aside),
            None => {
                self.pass(item, due);
                due
            }
        }
    }

    /// An item of this direction that arrives at `due` is before all that are still to come.
    pub(super) fn pass(&mut self, item: &Item, due: u64) {
        if item.aside.is_none() {
            self.line = self.line.max(item.on_time);
            if item.late.is_some() {
                self.late_line = self.late_line.max(due);
            }
        }
    }
}

/// How long it takes to send so many bytes, in nanoseconds, rounded up.
pub(super) fn sending_ns(bytes: usize, bits_per_s: u64) -> u64 {
    let bit_ns = (bytes as u128 * 8).saturating_mul(NS_PER_S);
    u64::try_from(bit_ns.div_ceil(u128::from(bits_per_s.max(1)))).unwrap_or(u64::MAX)
}

/// Flip a bit, counted from the first byte's lowest.
pub(super) fn flip(bytes: &mut [u8], bit: u64) {
    if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|at| bytes.get_mut(at)) {
        *byte ^= 1 << (bit % 8);
    }
}

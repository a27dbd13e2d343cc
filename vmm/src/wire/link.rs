//! One direction of a link: the sending card's queue, the order of frames after the queue, and their arrival times.
//!
//! A frame waits in the queue for the frames before it. It then takes the time of sending its bits, and arrives after
//! its drawn latency. Frames do not overtake each other: a frame that would arrive before an earlier frame arrives
//! together with it. Frames that faults delay keep a separate order: they do not overtake each other, but other frames
//! may overtake them. So frames sent after the fault need not wait for them. Reordered frames and extra copies belong
//! to neither order.

use serde::{Deserialize, Serialize};

const NS_PER_S: u128 = 1_000_000_000;

/// A frame, or an extra copy of one, on its way from one port to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Item {
    /// Sequence number. The wire numbers frames and copies in the order of sending. It does not number those that it
    /// drops because too many frames or bytes are in flight.
    pub(super) seq: u64,
    /// Number of the frame. Its extra copies, and its items for other receivers, have the same number.
    pub(super) frame: u64,
    pub(super) from: u8,
    pub(super) to: u8,
    /// Vtime of sending.
    pub(super) sent_at: u64,
    /// True if this is an extra copy of the frame.
    pub(super) copy: bool,
    /// True if a fault flipped bits of the frame.
    pub(super) flipped: bool,
    /// True while the frame waits in its sender's card, because a fault clogs the card: it neither sends nor receives.
    pub(super) in_card: bool,
    /// Latencies that were drawn for the frame: see `FrameFate`.
    pub(super) transit: u64,
    pub(super) late: Option<u64>,
    pub(super) aside: Option<u64>,
    /// Vtime at which the frame's last bit was sent.
    pub(super) depart: u64,
    /// Vtime at which the frame would arrive without the latency that faults add.
    pub(super) on_time: u64,
    pub(super) bytes: Vec<u8>,
}

/// State of a direction's queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Direction {
    /// Vtime at which the last bit in the queue will have been sent.
    pub(super) free_at: u64,
    /// Bytes in the queue, including the frame that is being sent.
    pub(super) queued: u64,
    /// Latest arrival so far, computed without the latency that faults add. Later frames arrive no earlier. Reordered
    /// frames and extra copies do not count here.
    pub(super) line: u64,
    /// Latest arrival so far of frames that faults delayed. Later frames that faults delay arrive no earlier. Reordered
    /// frames and extra copies do not count here.
    pub(super) late_line: u64,
}

impl Direction {
    /// Returns the vtime at which the item's last bit will be sent if the item enters the queue at `at`.
    pub(super) fn sent(&self, item: &Item, at: u64, bits_per_s: u64) -> u64 {
        self.free_at.max(at).saturating_add(sending_ns(item.bytes.len(), bits_per_s))
    }

    /// Puts an item into the queue. Its last bit is sent at `depart`. Returns its vtime of arrival.
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

    /// Records that an item of this direction arrives at `due`, so that later items do not overtake it.
    pub(super) fn pass(&mut self, item: &Item, due: u64) {
        if item.aside.is_none() {
            self.line = self.line.max(item.on_time);
            if item.late.is_some() {
                self.late_line = self.late_line.max(due);
            }
        }
    }
}

/// Returns the time to send `bytes` bytes, in nanoseconds, rounded up.
pub(super) fn sending_ns(bytes: usize, bits_per_s: u64) -> u64 {
    let bit_ns = (bytes as u128 * 8).saturating_mul(NS_PER_S);
    u64::try_from(bit_ns.div_ceil(u128::from(bits_per_s.max(1)))).unwrap_or(u64::MAX)
}

/// Flips a bit, counted from the lowest bit of the first byte.
pub(super) fn flip(bytes: &mut [u8], bit: u64) {
    if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|at| bytes.get_mut(at)) {
        *byte ^= 1 << (bit % 8);
    }
}

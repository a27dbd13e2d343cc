//! A split virtqueue (virtio 1.2, section 2.7). The crate `virtio-queue` handles the rings; this module parses
//! descriptor chains strictly.
//!
//! The crate silently ends a chain at a malformed descriptor. This module collects the whole chain, up to a bound, and
//! refuses it if it does not end properly. A device gets a list of segments, all of which lie in RAM.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use virtio_queue::{Queue, QueueOwnedT, QueueState, QueueT};
use vm_memory::{Bytes, GuestAddress};

use crate::ram::Ram;

/// Maximum number of descriptors in a chain, including indirect ones. Linux uses at most as many as a queue has
/// entries.
pub const CHAIN_SEGMENTS_MAX: usize = 1024;

/// Defect of a queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// The rings are not in RAM.
    #[error("its rings are outside memory")]
    OutsideRam,
    /// The available index moved by more than the queue's size.
    #[error("more buffers are available than it has entries")]
    AvailableIndex,
    /// A chain does not end, or refers to a descriptor outside its table.
    #[error("descriptor chain {head} does not end properly")]
    Chain {
        /// Index of the chain's first descriptor.
        head: u16,
    },
    /// A chain is longer than [`CHAIN_SEGMENTS_MAX`].
    #[error("descriptor chain {head} has more than {CHAIN_SEGMENTS_MAX} descriptors")]
    ChainTooLong {
        /// Index of the chain's first descriptor.
        head: u16,
    },
    /// A buffer is not in RAM.
    #[error("{len} bytes at {addr:#x} are outside memory")]
    Segment {
        /// Guest-physical address.
        addr: u64,
        /// Length in bytes.
        len: u32,
    },
    /// A device-readable buffer follows a device-writable one.
    #[error("descriptor chain {head} has a readable part after a writable one")]
    Order {
        /// Index of the chain's first descriptor.
        head: u16,
    },
}

/// One buffer of a chain. It lies within RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Guest-physical address.
    pub addr: u64,
    /// Length in bytes.
    pub len: u32,
}

/// Descriptor chain: segments that the device reads, then segments that it writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// Index of the first descriptor, which identifies the chain in the used ring.
    pub head: u16,
    /// Device-readable segments.
    pub readable: Vec<Segment>,
    /// Device-writable segments.
    pub writable: Vec<Segment>,
}

/// Returns the total length of some segments, in bytes.
pub fn total(segments: &[Segment]) -> u64 {
    segments.iter().map(|s| u64::from(s.len)).sum()
}

/// Returns the bytes of `segments` from byte `skip` on, at most `bytes` of them, as shorter segments.
pub fn part(segments: &[Segment], mut skip: u64, mut bytes: u64) -> Vec<Segment> {
    let mut taken = Vec::new();
    for segment in segments {
        let len = u64::from(segment.len);
        if skip >= len {
            skip -= len;
            continue;
        }
        let take = (len - skip).min(bytes);
        if take > 0 {
            taken.push(Segment { addr: segment.addr + skip, len: take as u32 });
        }
        skip = 0;
        bytes -= take;
    }
    taken
}

/// Copies the first `bytes` bytes out of segments, or all if the segments are shorter.
pub fn read(ram: &Ram, segments: &[Segment], bytes: u64) -> Result<Vec<u8>, QueueError> {
    let parts = part(segments, 0, bytes);
    let mut buf = vec![0; total(&parts) as usize];
    let mut at = 0;
    for Segment { addr, len } in parts {
        let end = at + len as usize;
        ram.memory()
            .read_slice(&mut buf[at..end], GuestAddress(addr))
            .map_err(|_| QueueError::Segment { addr, len })?;
        at = end;
    }
    Ok(buf)
}

/// Copies `content` into segments from their beginning. Returns the number of bytes copied, which is less than all if
/// the segments are too short.
pub fn write(ram: &Ram, segments: &[Segment], content: &[u8]) -> Result<u32, QueueError> {
    let mut at = 0;
    for &Segment { addr, len } in segments {
        let end = content.len().min(at + len as usize);
        ram.memory()
            .write_slice(&content[at..end], GuestAddress(addr))
            .map_err(|_| QueueError::Segment { addr, len })?;
        at = end;
    }
    Ok(at as u32)
}

/// A queue of a device.
#[derive(Debug, PartialEq, Eq)]
pub struct VirtQueue {
    ring: Queue,
}

impl VirtQueue {
    /// Creates a queue of at most `max_size` entries.
    ///
    /// # Panics
    /// Panics if `max_size` is not a power of two. Sizes are constants of the devices.
    pub fn new(max_size: u16) -> VirtQueue {
        VirtQueue { ring: Queue::new(max_size).unwrap_or_else(|e| panic!("queue size {max_size}: {e}")) }
    }

    /// Returns the queue of the crate `virtio-queue`, for the transport's registers.
    pub(crate) fn ring(&mut self) -> &mut Queue {
        &mut self.ring
    }
    /// True if the driver has set up the queue.
    pub fn ready(&self) -> bool {
        self.ring.ready()
    }
    /// Returns the number of entries that the driver chose.
    pub fn size(&self) -> u16 {
        self.ring.size()
    }
    /// Returns the maximum number of entries.
    pub fn max_size(&self) -> u16 {
        self.ring.max_size()
    }

    /// Makes the queue ready. Returns an error unless its rings lie in RAM.
    pub(crate) fn enable(&mut self, ram: &Ram, event_idx: bool) -> Result<(), QueueError> {
        self.ring.set_event_idx(event_idx);
        self.ring.set_ready(true);
        if self.ring.is_valid(ram.memory()) && self.ring.avail_ring() != 0 {
            return Ok(());
        }
        self.ring.set_ready(false);
        Err(QueueError::OutsideRam)
    }

    /// Takes the next chain that the driver has made available, if any.
    pub fn pop(&mut self, ram: &Ram) -> Result<Option<Chain>, QueueError> {
        if !self.ring.ready() {
            return Ok(None);
        }
        let memory = ram.memory();
        let raw = match self.ring.iter(memory) {
            Ok(mut available) => available.next(),
            Err(virtio_queue::Error::InvalidAvailRingIndex) => return Err(QueueError::AvailableIndex),
            Err(_) => return Err(QueueError::OutsideRam),
        };
        let Some(raw) = raw else { return Ok(None) };

        let head = raw.head_index();
        let mut chain = Chain { head, readable: Vec::new(), writable: Vec::new() };
        let mut ended = false;
        for descriptor in raw {
            let segment = Segment { addr: descriptor.addr().0, len: descriptor.len() };
            let end = segment.addr.checked_add(u64::from(segment.len));
            if end.is_none_or(|end| end > ram.len()) {
                return Err(QueueError::Segment { addr: segment.addr, len: segment.len });
            }
            if chain.readable.len() + chain.writable.len() == CHAIN_SEGMENTS_MAX {
                return Err(QueueError::ChainTooLong { head });
            }
            if descriptor.is_write_only() {
                chain.writable.push(segment);
            } else if chain.writable.is_empty() {
                chain.readable.push(segment);
            } else {
                return Err(QueueError::Order { head });
            }
            ended = !descriptor.has_next();
        }
        if ended { Ok(Some(chain)) } else { Err(QueueError::Chain { head }) }
    }

    /// Returns a chain to the driver, with `len` bytes written. Returns true if the driver wants an interrupt.
    pub fn push_used(&mut self, ram: &Ram, head: u16, len: u32) -> Result<bool, QueueError> {
        if !self.ring.ready() {
            return Ok(false);
        }
        let memory = ram.memory();
        self.ring.add_used(memory, head, len).map_err(|_| QueueError::Chain { head })?;
        // The crate counts the chains since the last call of `needs_notification`. Everett calls it after each chain,
        // so the count is zero whenever a moment is taken, and moments need not store the count.
        self.ring.needs_notification(memory).map_err(|_| QueueError::OutsideRam)
    }

    /// Asks the driver to notify the device when more buffers become available. The guest does not run during this
    /// call, so the device misses no buffer.
    pub fn want_notification(&mut self, ram: &Ram) -> Result<(), QueueError> {
        if !self.ring.ready() {
            return Ok(());
        }
        self.ring.enable_notification(ram.memory()).map_err(|_| QueueError::OutsideRam)?;
        Ok(())
    }
}

/// Serialised form of a queue: the configuration of its rings and the positions in them.
#[derive(Serialize, Deserialize)]
struct Image {
    max_size: u16,
    size: u16,
    ready: bool,
    event_idx: bool,
    next_avail: u16,
    next_used: u16,
    desc_table: u64,
    avail_ring: u64,
    used_ring: u64,
}

impl Serialize for VirtQueue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let s = self.ring.state();
        Image {
            max_size: s.max_size,
            size: s.size,
            ready: s.ready,
            event_idx: s.event_idx_enabled,
            next_avail: s.next_avail,
            next_used: s.next_used,
            desc_table: s.desc_table,
            avail_ring: s.avail_ring,
            used_ring: s.used_ring,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for VirtQueue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<VirtQueue, D::Error> {
        let i = Image::deserialize(deserializer)?;
        let state = QueueState {
            max_size: i.max_size,
            next_avail: i.next_avail,
            next_used: i.next_used,
            event_idx_enabled: i.event_idx,
            size: i.size,
            ready: i.ready,
            desc_table: i.desc_table,
            avail_ring: i.avail_ring,
            used_ring: i.used_ring,
        };
        let ring = Queue::try_from(state).map_err(|e| serde::de::Error::custom(format!("virtqueue: {e}")))?;
        Ok(VirtQueue { ring })
    }
}

//! The volatile write cache: the versions of a sector that a power loss may leave behind.
//!
//! The disk's content has the newest version of each sector. The cache is a log of the writes that no flush has made
//! durable yet, in the order of completion. Each record of the log has, in its field `before`, the content that a few
//! sectors had *before* the write. The versions of a sector are thus the `before`s of its records, oldest first, and
//! then the current content. The first of these versions is the durable one. A flush drops the records of all writes
//! that it covers, which are at the front of the log. The first remaining version of a sector is then the content that
//! the last covered write left, so this content is now durable. Destaging (writing the oldest versions back when the
//! cache is full) drops one record at a time. The log needs no index, because sectors are looked up only at a power
//! loss.
//!
//! - `fifo`: a queue that clones share; `record`: the content of a few sectors before a write; `stored`: encodes and
//!   decodes the cache for files
//!
//! **Invariants.**
//! - Write numbers never descend along the log. All are below the number of the next write.
//! - Between two requests, the versions in the log have at most [`CACHE_BYTES_MAX`] bytes.

mod fifo;
mod record;
mod stored;

pub use stored::LogError;

pub(super) use record::{Before, Record};
pub(super) use stored::Head;

use std::fmt;

use super::SectorSize;
use crate::digest::{Digest, LeafSum};
use fifo::Fifo;

/// Maximum bytes of versions in a disk's cache, like the size of a drive's cache memory. Beyond it, the oldest versions
/// become durable.
pub const CACHE_BYTES_MAX: u64 = 64 << 20;

/// Volatile write cache of one disk.
#[derive(Clone, Default)]
pub(super) struct Cache {
    log: Fifo<Record>,
    /// Bytes of all versions in the log.
    bytes: u64,
    /// Number of the next write. Writes are numbered in the order of completion.
    next: u64,
    /// Sum of the hashes of the first `hashed` records. Records are hashed only for a digest, because most records are
    /// dropped before the next digest.
    sum: LeafSum,
    hashed: usize,
}

impl Cache {
    /// Returns the number for a write that completes now.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
    /// Returns the number of the next write. All writes with lower numbers have completed.
    pub(super) fn completed(&self) -> u64 {
        self.next
    }
    pub(super) fn len(&self) -> usize {
        self.log.len()
    }
    /// Returns the bytes of all versions in the log.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Iterates over the records, oldest first.
    pub(super) fn records(&self) -> impl Iterator<Item = &Record> {
        self.log.iter_from(0)
    }

    /// Appends a record. The caller appends it before it changes the sectors.
    pub(super) fn push(&mut self, record: Record, size: SectorSize) {
        self.bytes += u64::from(record.sectors) * size.bytes();
        self.log.push(record);
    }

    /// Makes the oldest versions durable until the log fits into [`CACHE_BYTES_MAX`].
    pub(super) fn destage(&mut self, size: SectorSize) {
        while self.bytes > CACHE_BYTES_MAX {
            self.drop_front(size);
        }
    }

    /// Makes writes with numbers below `covers` durable.
    pub(super) fn flush(&mut self, covers: u64, size: SectorSize) {
        if covers >= self.next {
            self.clear();
        }
        while self.log.front().is_some_and(|record| record.write < covers) {
            self.drop_front(size);
        }
    }

    /// Makes all writes durable.
    pub(super) fn clear(&mut self) {
        if self.len() > 0 {
            *self = Cache { next: self.next, ..Cache::default() };
        }
    }

    /// Replaces each record by the result of `f`.
    pub(super) fn map(&mut self, f: impl FnMut(&Record) -> Record) {
        let log = self.log.iter_from(0).map(f).collect();
        *self = Cache { log, bytes: self.bytes, next: self.next, ..Cache::default() };
    }

    /// Returns the digest of the cache. Costs time in proportion to the records added since the last call.
    pub(super) fn digest(&mut self) -> Digest {
        for record in self.log.iter_from(self.hashed) {
            self.sum.add(record.write, record.hash());
        }
        self.hashed = self.log.len();
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.next.to_le_bytes()).update(&self.sum.digest().0);
        Digest(*hasher.finalize().as_bytes())
    }

    #[cfg(test)]
    pub(super) fn shares(&self, other: &Cache) -> bool {
        self.log.shares(&other.log)
    }

    fn drop_front(&mut self, size: SectorSize) {
        let Some(record) = self.log.front() else { return };
        self.bytes = self.bytes.saturating_sub(u64::from(record.sectors) * size.bytes());
        if self.hashed > 0 {
            self.sum.remove(record.write, record.hash());
            self.hashed -= 1;
        }
        self.log.drop_front();
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({} versions, {} bytes, {} writes)", self.len(), self.bytes, self.next)
    }
}

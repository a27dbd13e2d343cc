//! The volatile write cache: the versions that a sector may hold after a loss of power.
//!
//! The content has the newest version of each sector. The cache is a log of the content that sectors had *before*
//! each write that no flush has covered, in the order of completion. The versions of a sector are thus the `before`s
//! of its records (the first one is the durable version) and the content itself. A flush drops the front of the log,
//! up to the last write that it covers: the next record's `before` is then the result of the last covered write.
//! Destaging does the same, one record at a time. No sector is looked up before power is lost, so the log has no
//! index.
//!
//! - `fifo`: a queue that clones share; `record`: an entry; `stored`: the form in files
//!
//! **Invariants.**
//! - Numbers of writes never descend along the log, and all are below the next number.
//! - The versions in the log have at most [`CACHE_BYTES_MAX`] bytes between two requests.

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

/// Maximum bytes of versions that a disk holds back, like a drive's cache memory. Beyond it the oldest become durable.
pub const CACHE_BYTES_MAX: u64 = 64 << 20;

/// Write cache of one disk.
#[derive(Clone, Default)]
pub(super) struct Cache {
    log: Fifo<Record>,
    /// Bytes of sectors in the log.
    bytes: u64,
    /// Number of the next write.
    next: u64,
    /// Sum of the hashes of the first `hashed` records. Records are hashed only when a digest is taken, since most
    /// have been dropped by then.
    sum: LeafSum,
    hashed: usize,
}

impl Cache {
    /// Returns the number of a write that completes now.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
    /// Returns the number below which all writes have completed.
    pub(super) fn completed(&self) -> u64 {
        self.next
    }
    /// Returns the number of records in the log.
    pub(super) fn len(&self) -> usize {
        self.log.len()
    }
    /// Returns the bytes of sectors in the log.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Iterates over the log, oldest record first.
    pub(super) fn records(&self) -> impl Iterator<Item = &Record> {
        self.log.iter_from(0)
    }

    /// Appends a record. Called before a write changes the sectors.
    pub(super) fn push(&mut self, record: Record, size: SectorSize) {
        self.bytes += u64::from(record.sectors) * size.bytes();
        self.log.push(record);
    }

    /// Makes the oldest versions durable until the rest fits into [`CACHE_BYTES_MAX`].
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

    /// Replaces each record by `f` of it.
    pub(super) fn map(&mut self, f: impl FnMut(&Record) -> Record) {
        let log = self.log.iter_from(0).map(f).collect();
        *self = Cache { log, bytes: self.bytes, next: self.next, ..Cache::default() };
    }

    /// Returns the digest of the cache. The cost is proportional to the number of records added since the last call.
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

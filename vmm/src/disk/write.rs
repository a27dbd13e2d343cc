//! Writes of requests: each request changes some ranges and keeps their old content in the cache.

use super::cache::Record;
use super::content::for_blocks;
use super::{BLOCK, Disk, ZEROES};

/// Change that a request makes to one range. Offset and length are multiples of the logical sector size, within the
/// disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Content is written.
    Write {
        /// Offset in bytes.
        offset: u64,
        /// Bytes to write.
        content: Vec<u8>,
    },
    /// Zeroes are written.
    Zero {
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes.
        len: u64,
        /// True if the zeroes take room on a thin-provisioned device. If false, blocks that were never written remain
        /// so.
        takes_room: bool,
    },
}

impl Change {
    /// Returns the number of bytes that it changes.
    pub(crate) fn bytes(&self) -> u64 {
        self.range().1
    }
    pub(super) fn range(&self) -> (u64, u64) {
        match self {
            Change::Write { offset, content } => (*offset, content.len() as u64),
            Change::Zero { offset, len, .. } => (*offset, *len),
        }
    }
}

impl Disk {
    /// True if the disk has room for these changes.
    pub(crate) fn has_room(&self, changes: &[Change]) -> bool {
        let fits = |change: &Change| {
            let (offset, len) = change.range();
            let takes_room = !matches!(change, Change::Zero { takes_room: false, .. });
            let mut blocks = offset / BLOCK..(offset + len).div_ceil(BLOCK);
            !takes_room || len == 0 || blocks.all(|block| self.content.allocated(block))
        };
        !self.faults.full() || changes.iter().all(fits)
    }

    /// Applies a request that writes and completes now. The changes are volatile. Returns the number of the write.
    pub(crate) fn complete(&mut self, changes: &[Change]) -> u64 {
        let write = self.cache.number();
        for change in changes {
            self.change(write, change, true);
        }
        write
    }
    /// Returns the number of the next write. A flush that is submitted now covers all writes with lower numbers.
    pub(crate) fn completed(&self) -> u64 {
        self.cache.completed()
    }
    /// Completes a flush, which makes writes with numbers below `covers` durable.
    pub(crate) fn flush(&mut self, covers: u64) {
        self.cache.flush(covers, self.sector);
    }

    /// Applies one change of a write and keeps the old content in the cache. If `bounded`, the cache is destaged to its
    /// bound.
    pub(super) fn change(&mut self, write: u64, change: &Change, bounded: bool) {
        let size = self.sector.bytes();
        let (offset, len) = change.range();
        for_blocks(offset, len, |block, at, range| {
            let before = self.content.before(block, at, range.len());
            let new = match change {
                Change::Write { content, .. } => &content[range.clone()],
                Change::Zero { .. } => &ZEROES[..range.len()],
            };
            let takes_room = !matches!(change, Change::Zero { takes_room: false, .. });
            if !takes_room && before.part(0, range.len()) == new && self.content.written(block).is_none() {
                return;
            }
            // Recorded even if the bytes are equal: this write may survive where an older write of the same bytes is
            // lost.
            let sector = (block * BLOCK + at as u64) / size;
            let sectors = (range.len() as u64 / size) as u8;
            self.cache.push(Record { write, sector, sectors, before }, self.sector);
            if bounded {
                self.cache.destage(self.sector);
            }
            match change {
                Change::Write { .. } => self.content.write_block(block, at, new),
                Change::Zero { .. } => self.content.zero_block(block, at, new.len()),
            }
        });
    }
}

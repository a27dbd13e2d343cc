//! Writes to the disk. A write request changes ranges of the disk, and the write cache keeps the old content of these
//! ranges.

use super::cache::Record;
use super::content::for_blocks;
use super::{BLOCK, Disk, ZEROES};

/// Change that a request makes to one range of the disk. Offset and length are multiples of the logical sector size,
/// and the range is within the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Writes `content`.
    Write {
        /// Offset in bytes.
        offset: u64,
        /// Bytes to write.
        content: Vec<u8>,
    },
    /// Writes zeroes.
    Zero {
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes.
        len: u64,
        /// True if the zeroes use space on a thin-provisioned device. If false, blocks that were never written stay
        /// unwritten.
        takes_room: bool,
    },
}

impl Change {
    /// Returns the number of bytes that the change covers.
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
    /// True if the disk has space for these changes.
    pub(crate) fn has_room(&self, changes: &[Change]) -> bool {
        let fits = |change: &Change| {
            let (offset, len) = change.range();
            let takes_room = !matches!(change, Change::Zero { takes_room: false, .. });
            let mut blocks = offset / BLOCK..(offset + len).div_ceil(BLOCK);
            !takes_room || len == 0 || blocks.all(|block| self.content.allocated(block))
        };
        !self.faults.full() || changes.iter().all(fits)
    }

    /// Applies the changes of a write that completes now. They are volatile. Returns the number of the write.
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
    /// Completes a flush, which makes all writes with numbers below `covers` durable.
    pub(crate) fn flush(&mut self, covers: u64) {
        self.cache.flush(covers, self.sector);
    }

    /// Applies one change of a write and keeps the old content in the cache. If `bounded` is true, makes the oldest
    /// versions durable until the cache does not exceed its maximum size.
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
            // The old content is kept even if the bytes are equal, because a power loss may lose an older write of the
            // same bytes and keep this one.
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

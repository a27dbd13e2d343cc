//! What requests write: each changes some ranges, and leaves behind what was there.

use super::cache::Record;
use super::content::for_blocks;
use super::{BLOCK, Disk, ZEROES};

/// What a request writes to one range. Offsets and lengths are those of whole logical sectors on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// This.
    Write {
        /// Where, in bytes.
        offset: u64,
        /// What.
        content: Vec<u8>,
    },
    /// Zeroes.
    Zero {
        /// Where, in bytes.
        offset: u64,
        /// How many.
        len: u64,
        /// Whether this takes room on a thin device. Where it does not, blocks that were never written stay so.
        takes_room: bool,
    },
}

impl Change {
    /// How many bytes it changes.
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
    /// Whether there is room for what a request writes.
    pub(crate) fn has_room(&self, changes: &[Change]) -> bool {
        let fits = |change: &Change| {
            let (offset, len) = change.range();
            let takes_room = !matches!(change, Change::Zero { takes_room: false, .. });
            let mut blocks = offset / BLOCK..(offset + len).div_ceil(BLOCK);
            !takes_room || len == 0 || blocks.all(|block| self.content.allocated(block))
        };
        !self.faults.full() || changes.iter().all(fits)
    }

    /// A request that writes completes: its versions are volatile. Returns its number.
    pub(crate) fn complete(&mut self, changes: &[Change]) -> u64 {
        let write = self.cache.number();
        for change in changes {
            self.change(write, change, true);
        }
        write
    }
    /// A flush that is submitted now covers writes with numbers below this.
    pub(crate) fn completed(&self) -> u64 {
        self.cache.completed()
    }
    /// A flush completes that covers writes with numbers below this.
    pub(crate) fn flush(&mut self, covers: u64) {
        self.cache.flush(covers, self.sector);
    }

    /// Bring in one change of a write, and keep what was there. `bounded`: as the cache has room.
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
            // Also when it changes nothing: what is there may be lost where this write survives.
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

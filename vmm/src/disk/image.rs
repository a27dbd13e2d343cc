//! The content of a disk, block by block, without the blocks of zeroes.

use std::ops::Range;

use super::{BLOCK, Disk, ZEROES};

impl Disk {
    /// Calls `visit` for each block that has a byte other than zero, in ascending order, with its offset and its
    /// content. If the disk ends within a block, the content ends there, too. Costs time in proportion to the base's
    /// files and the written blocks, whatever the size of the disk.
    ///
    /// # Errors
    /// Returns the first error of `visit`.
    pub fn visit_content<E>(&self, mut visit: impl FnMut(u64, &[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut buf = *ZEROES;
        for block in self.blocks_with_content() {
            let offset = block * BLOCK;
            // The cast loses nothing, because the length is at most a block.
            let len = self.len().saturating_sub(offset).min(BLOCK) as usize;
            self.read(offset, &mut buf[..len]);
            if buf[..len] != ZEROES[..len] {
                visit(offset, &buf[..len])?;
            }
        }
        Ok(())
    }

    /// Returns the number of writes that have completed and that no flush has made durable.
    #[must_use]
    pub fn unflushed_writes(&self) -> u64 {
        let mut last = None;
        let first = |write: &u64| last.replace(*write) != Some(*write);
        self.cache.records().map(|record| record.write).filter(first).count() as u64
    }

    /// Returns the numbers of all blocks that were written or that lie in the base's files, in ascending order.
    fn blocks_with_content(&self) -> impl Iterator<Item = u64> {
        let of_base = self.content.base_ranges().into_iter().flat_map(blocks);
        let mut written = self.written_blocks().into_iter().peekable();
        let mut of_base = of_base.peekable();
        let mut next = move || match (of_base.peek(), written.peek()) {
            (Some(base), Some(block)) if block < base => written.next(),
            (Some(_), _) => of_base.next(),
            (None, _) => written.next(),
        };
        let mut last = None;
        // Two files can meet in a block, and a block of a file can also have been written.
        std::iter::from_fn(move || {
            loop {
                let block = next()?;
                if last != Some(block) {
                    last = Some(block);
                    return Some(block);
                }
            }
        })
    }
}

/// Returns the numbers of the blocks that a range of bytes touches.
fn blocks(bytes: Range<u64>) -> Range<u64> {
    bytes.start / BLOCK..bytes.end.div_ceil(BLOCK)
}

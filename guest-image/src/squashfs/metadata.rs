//! Writes the tables of a SquashFS image: streams of bytes in blocks of 8 KiB. Each block has a header of two bytes.

use std::io::{self, Write};

/// Length of a full block in bytes, without its header.
pub(super) const BLOCK_BYTES: usize = 8192;
/// Flag in a block's header: the block is not compressed.
pub(super) const NOT_PACKED: u16 = 0x8000;

/// A location in a table: the offset of the block in the written table, in bytes with all headers, and the offset in
/// the block's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MetadataLocation {
    pub(super) block: u64,
    pub(super) offset: u16,
}

impl MetadataLocation {
    /// Returns the location as one number, with which the format refers to an inode or to an attribute set.
    pub(super) fn reference(self) -> u64 {
        self.block << 16 | u64::from(self.offset)
    }
}

/// A table while it is built.
#[derive(Debug, Default)]
pub(super) struct MetadataWriter {
    bytes: Vec<u8>,
}

impl MetadataWriter {
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the location of the next byte.
    pub(super) fn place(&self) -> MetadataLocation {
        let (block, offset) = (self.bytes.len() / BLOCK_BYTES, self.bytes.len() % BLOCK_BYTES);
        // The offset is less than 8192, so the conversion cannot fail.
        MetadataLocation { block: written_start(block), offset: u16::try_from(offset).unwrap_or(0) }
    }

    /// Returns the length of the content so far, in bytes, without block headers.
    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the start of each block, in bytes from the start of the written table.
    pub(super) fn block_starts(&self) -> impl Iterator<Item = u64> + use<> {
        (0..self.bytes.len().div_ceil(BLOCK_BYTES)).map(written_start)
    }

    /// Writes the blocks. Returns the number of bytes written.
    pub(super) fn copy_to(&self, out: &mut impl Write) -> io::Result<u64> {
        let mut written = 0;
        for block in self.bytes.chunks(BLOCK_BYTES) {
            let length = u16::try_from(block.len()).unwrap_or(0);
            out.write_all(&(length | NOT_PACKED).to_le_bytes())?;
            out.write_all(block)?;
            written += 2 + block.len() as u64;
        }
        Ok(written)
    }
}

fn written_start(block: usize) -> u64 {
    (block * (BLOCK_BYTES + 2)) as u64
}

#[cfg(test)]
mod tests {
    use super::{MetadataLocation, MetadataWriter};

    #[test]
    fn places_include_the_headers_of_earlier_blocks() {
        let mut writer = MetadataWriter::default();
        assert_eq!(writer.place(), MetadataLocation { block: 0, offset: 0 });
        writer.write(&[1; 8190]);
        assert_eq!(writer.place(), MetadataLocation { block: 0, offset: 8190 });
        writer.write(&[2; 5]);
        assert_eq!(writer.place(), MetadataLocation { block: 8194, offset: 3 });
        assert_eq!(writer.block_starts().collect::<Vec<_>>(), [0, 8194]);
        let mut out = Vec::new();
        assert_eq!(writer.copy_to(&mut out).unwrap(), 8195 + 4);
        assert_eq!(out.len(), 8199);
        assert_eq!(out[..2], (8192u16 | 0x8000).to_le_bytes());
        assert_eq!(out[8194..8196], (3u16 | 0x8000).to_le_bytes());
    }
}

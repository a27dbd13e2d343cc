//! Writes the data of a SquashFS image: the contents of files, in blocks.

use super::{BLOCK_BYTES, Blocks, Error, InodeLayout, Inserted};
use crate::tree::{Content, Kind, Tree};
use std::io::{self, Read as _, Write};

/// Flag in a block's size field: the block is not compressed.
pub(super) const NOT_PACKED: u32 = 1 << 24;
/// Size field of a block of zeros. The format does not store these blocks.
pub(super) const HOLE: u32 = 0;

/// Location of a file's content in an image.
#[derive(Debug, Clone, Default)]
pub(super) struct FileBlocks {
    /// Offset of the first block in the image, in bytes.
    pub(super) start: u64,
    /// Length of the file in bytes.
    pub(super) length: u64,
    /// Size fields of the blocks, in the format's encoding.
    pub(super) sizes: Vec<u32>,
    /// Number of the file's bytes in blocks of zeros, which are not stored.
    pub(super) sparse: u64,
}

/// Writes the content of every file, in the order of the inodes.
pub(super) fn write(
    tree: &Tree,
    layout: &InodeLayout,
    inserted: &Inserted,
    out: &mut impl Write,
    position: &mut u64,
) -> Result<Blocks, Error> {
    let mut all = Blocks::new();
    let mut buffer = vec![0u8; BLOCK_BYTES as usize];
    for (id, path) in &layout.order {
        if let Kind::File(content) = &tree.inode(*id).kind {
            let blocks = match inserted.place(content) {
                Some(start) => in_place(start, content.length()),
                None => file(content, &mut buffer, out, position).map_err(|failure| failure.of(path))?,
            };
            all.insert(*id, blocks);
        }
    }
    Ok(all)
}

/// Returns the location of a file's content that is part of an inserted file, i.e. of a host file that the image
/// contains unchanged. The content begins at `start` in the image. Its blocks of zeros are stored like other blocks.
fn in_place(start: u64, length: u64) -> FileBlocks {
    let full = usize::try_from(length / u64::from(BLOCK_BYTES)).unwrap_or(usize::MAX);
    let mut sizes = vec![NOT_PACKED | BLOCK_BYTES; full];
    // The remainder is less than a block, so the cast is exact.
    let rest = (length % u64::from(BLOCK_BYTES)) as u32;
    if rest > 0 {
        sizes.push(NOT_PACKED | rest);
    }
    FileBlocks { start, length, sizes, sparse: 0 }
}

/// An I/O error of the source or of the image.
enum Failure {
    Read(io::Error),
    Write(io::Error),
}

impl Failure {
    fn of(self, path: &[u8]) -> Error {
        match self {
            Failure::Read(source) => Error::Read { path: path.escape_ascii().to_string(), source },
            Failure::Write(error) => Error::Write(error),
        }
    }
}

fn file(
    content: &Content,
    buffer: &mut [u8],
    out: &mut impl Write,
    position: &mut u64,
) -> Result<FileBlocks, Failure> {
    let mut blocks = FileBlocks { start: *position, length: content.length(), ..FileBlocks::default() };
    let mut reader = content.reader().map_err(Failure::Read)?;
    let mut left = blocks.length;
    while left > 0 {
        let length = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let block = &mut buffer[..length];
        // Fails if the file is now shorter than its recorded length.
        reader.read_exact(block).map_err(Failure::Read)?;
        left -= length as u64;
        if block.iter().all(|&byte| byte == 0) {
            blocks.sizes.push(HOLE);
            blocks.sparse += length as u64;
            continue;
        }
        out.write_all(block).map_err(Failure::Write)?;
        *position += length as u64;
        // A block has at most 128 KiB, so the conversion cannot fail.
        blocks.sizes.push(NOT_PACKED | u32::try_from(length).unwrap_or(BLOCK_BYTES));
    }
    Ok(blocks)
}

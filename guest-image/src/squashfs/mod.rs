//! Writer and reader of SquashFS 4.0 images (Linux, Documentation/filesystems/squashfs.rst), without compression.
//!
//! An image is not compressed. Each guest would execute instructions to decompress it, and the host would save little
//! memory: the host maps the file, and all machines with this image share its pages. An image has no fragments (blocks
//! that hold the ends of several files), because a guest would copy each end out of its block. Equal trees make equal
//! bytes: files are in the order of their names, tables are sorted, and the superblock's time comes from the caller.
//!
//! The file starts with the superblock and the files' data ([`data`]). Then come the inode table ([`inodes`]), the
//! directory table ([`folders`]), the table of users and groups, and the extended attributes ([`xattrs`]). Tables are
//! streams of 8 KiB blocks ([`metadata`]). [`read`] is the reader of images.

mod data;
mod folders;
mod inodes;
mod metadata;
pub(crate) mod read;
mod xattrs;

use crate::tree::{Content, InodeId, Kind, Tree};
use data::FileBlocks;
use metadata::MetadataWriter;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::Arc;

/// Size of a full data block in bytes. To read any byte of a file, the guest's kernel reads the whole block, with one
/// disk request.
const BLOCK_BYTES: u32 = 128 << 10;
const BLOCK_LOG: u16 = 17;

const MAGIC: u32 = 0x7371_7368;
const SUPERBLOCK_BYTES: u64 = 96;
/// Number of the compression method gzip. The format requires a method, although nothing is compressed.
const COMPRESSION: u16 = 1;
/// Flags: inodes, data, fragments, attributes and ids are not compressed, and there are no fragments.
const FLAGS: u16 = 0x0001 | 0x0002 | 0x0008 | 0x0010 | 0x0100 | 0x0800;
const NO_XATTRS: u16 = 0x0200;
const ABSENT: u64 = u64::MAX;

/// An image is padded to a multiple of this number of bytes, so that it is a disk of whole sectors and whole pages.
pub const PADDING_BYTES: u64 = 4096;

/// Maximum number of distinct users and groups. The format counts them with 16 bits.
const IDS_MAX: usize = 65_535;

/// Reason why an image cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The image cannot be written.
    #[error("cannot write the root filesystem")]
    Write(#[from] io::Error),
    /// The content of a file cannot be read.
    #[error("cannot read the content of {path}")]
    Read {
        /// Path of the file.
        path: String,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The tree exceeds a bound of the format.
    #[error("the tree has too many {0} for SquashFS")]
    TooMany(&'static str),
    /// An extended attribute is in a namespace that the format does not support.
    #[error("{path} has the extended attribute {name}, which SquashFS cannot hold")]
    Attribute {
        /// Path of the file.
        path: String,
        /// Name of the attribute.
        name: String,
    },
}

/// Writes a tree as an image. `time_s` is the image's time in seconds since 1970. Returns the image's length in bytes.
///
/// # Errors
/// Returns an error if the image cannot be written, a file cannot be read, or the tree exceeds a bound of the format.
pub fn write(tree: &Tree, time_s: u32, out: &mut (impl Write + Seek)) -> Result<u64, Error> {
    write_around(tree, time_s, &Inserted::default(), out)
}

/// Length in bytes of an image's head, the padded superblock. [`Inserted`] files follow it.
pub const HEAD_BYTES: u64 = 4096;

/// Files that are inserted into an image unchanged, after its first [`HEAD_BYTES`]. If the content of a file of the
/// tree is a part of an inserted file, its inode refers to that part, and the content is not written again.
#[derive(Debug, Default)]
pub struct Inserted {
    /// The inserted files in order, each with its length in bytes, which is a multiple of [`PADDING_BYTES`].
    pub files: Vec<(Arc<File>, u64)>,
}

impl Inserted {
    /// Returns the total length of the files in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Returns the offset of a file's content in the image, in bytes. `None` if the content is not a part of an
    /// inserted file.
    fn place(&self, content: &Content) -> Option<u64> {
        let Content::Span { file, offset, .. } = content else { return None };
        let mut start = HEAD_BYTES;
        for (inserted, bytes) in &self.files {
            if Arc::ptr_eq(inserted, file) {
                return Some(start + offset);
            }
            start += bytes;
        }
        None
    }
}

/// Writes an image as [`write()`](fn@write) does, but leaves the inserted files out of `out`. The output has the first
/// [`HEAD_BYTES`] of the image, directly followed by the parts after the inserted files. Returns the output's length in
/// bytes.
///
/// # Errors
/// See [`write()`](fn@write).
pub fn write_around(
    tree: &Tree,
    time_s: u32,
    inserted: &Inserted,
    out: &mut (impl Write + Seek),
) -> Result<u64, Error> {
    let layout = InodeLayout::of(tree)?;
    // If no files are inserted, the data starts directly after the superblock.
    let skipped = inserted.bytes();
    let start = if inserted.files.is_empty() { SUPERBLOCK_BYTES } else { HEAD_BYTES };
    out.seek(SeekFrom::Start(start))?;
    let mut position = start + skipped;
    let blocks = data::write(tree, &layout, inserted, out, &mut position)?;
    let xattrs = xattrs::Table::of(tree, &layout)?;
    let tables = inodes::write(tree, &layout, &blocks, &xattrs)?;

    let inode_table = position;
    position += tables.inodes.copy_to(out)?;
    let directory_table = position;
    position += tables.folders.copy_to(out)?;
    let id_table = write_indexed(&layout.id_metadata(), out, &mut position)?;
    let xattr_table = xattrs.write(out, &mut position)?;
    let bytes_used = position;
    let padding = bytes_used.next_multiple_of(PADDING_BYTES) - bytes_used;
    out.write_all(&vec![0; usize::try_from(padding).unwrap_or(0)])?;

    let flags = if xattr_table.is_none() { FLAGS | NO_XATTRS } else { FLAGS };
    let mut superblock = Vec::new();
    superblock.extend(MAGIC.to_le_bytes());
    superblock.extend(layout.count()?.to_le_bytes());
    superblock.extend(time_s.to_le_bytes());
    superblock.extend(BLOCK_BYTES.to_le_bytes());
    superblock.extend(0u32.to_le_bytes()); // fragments
    for field in [COMPRESSION, BLOCK_LOG, flags, layout.id_count()?, 4, 0] {
        superblock.extend(field.to_le_bytes());
    }
    let xattr_table = xattr_table.unwrap_or(ABSENT);
    let fragment_table = id_table;
    let positions = [
        tables.root,
        bytes_used,
        id_table,
        xattr_table,
        inode_table,
        directory_table,
        fragment_table,
        ABSENT,
    ];
    for field in positions {
        superblock.extend(field.to_le_bytes());
    }
    out.seek(SeekFrom::Start(0))?;
    out.write_all(&superblock)?;
    out.flush()?;
    Ok(bytes_used + padding - skipped)
}

/// Writes a table's blocks and then a list of the blocks' starts. Returns the offset of the list in the image.
fn write_indexed(table: &MetadataWriter, out: &mut impl Write, position: &mut u64) -> Result<u64, Error> {
    let starts: Vec<u64> = table.block_starts().map(|start| *position + start).collect();
    *position += table.copy_to(out)?;
    let index = *position;
    for start in starts {
        out.write_all(&start.to_le_bytes())?;
        *position += 8;
    }
    Ok(index)
}

/// Order, numbers and link counts of the inodes. They are determined before anything is written.
struct InodeLayout {
    /// All inodes from the root folder down, each once and with a path for messages. Folders come before their content.
    /// The entries of a folder are sorted by the bytes of their names.
    order: Vec<(InodeId, Vec<u8>)>,
    /// Inode number and link count of each inode.
    numbers: BTreeMap<InodeId, Numbered>,
    /// Numbers of all users and groups, sorted.
    ids: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Numbered {
    number: u32,
    links: u32,
}

impl InodeLayout {
    fn of(tree: &Tree) -> Result<Self, Error> {
        let mut layout = InodeLayout { order: Vec::new(), numbers: BTreeMap::new(), ids: Vec::new() };
        // Files and folders that remain to be visited. The tree bounds the length of paths.
        let mut stack = vec![(Tree::ROOT, Vec::new())];
        while let Some((id, path)) = stack.pop() {
            if let Some(known) = layout.numbers.get_mut(&id) {
                known.links += 1;
                continue;
            }
            let number = u32::try_from(layout.order.len() + 1).map_err(|_| Error::TooMany("inodes"))?;
            let mut links = 1;
            if let Kind::Folder(entries) = &tree.inode(id).kind {
                // The links of a folder: its name, its own `.`, and the `..` of each folder in it.
                let folder = |id: &&InodeId| matches!(tree.inode(**id).kind, Kind::Folder(_));
                let folders = entries.values().filter(folder).count();
                links = 2 + u32::try_from(folders).map_err(|_| Error::TooMany("folders"))?;
                for (name, &child) in entries.iter().rev() {
                    stack.push((child, [path.as_slice(), b"/", name].concat()));
                }
            }
            layout.numbers.insert(id, Numbered { number, links });
            layout.order.push((id, path));
        }
        let attributes = layout.order.iter().map(|(id, _)| &tree.inode(*id).attributes);
        let ids: BTreeSet<u32> = attributes.flat_map(|attributes| [attributes.uid, attributes.gid]).collect();
        layout.ids = ids.into_iter().collect();
        Ok(layout)
    }

    fn count(&self) -> Result<u32, Error> {
        u32::try_from(self.order.len()).map_err(|_| Error::TooMany("inodes"))
    }

    fn id_count(&self) -> Result<u16, Error> {
        if self.ids.len() > IDS_MAX {
            return Err(Error::TooMany("users and groups"));
        }
        u16::try_from(self.ids.len()).map_err(|_| Error::TooMany("users and groups"))
    }

    /// Returns the index of a user or group in the table of users and groups.
    fn id_index(&self, id: u32) -> u16 {
        // The table contains every id of the tree, and `id_count` has checked that an index fits 16 bits.
        self.ids.binary_search(&id).ok().and_then(|index| u16::try_from(index).ok()).unwrap_or(0)
    }

    fn id_metadata(&self) -> MetadataWriter {
        let mut writer = MetadataWriter::default();
        for id in &self.ids {
            writer.write(&id.to_le_bytes());
        }
        writer
    }
}

/// Location of each file's blocks.
type Blocks = BTreeMap<InodeId, FileBlocks>;

#[cfg(test)]
mod tests;

//! Reads the SquashFS images that this module writes. Refuses images with compression or fragments.
//!
//! The reader checks every offset and count, so a damaged image causes an error.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::data::{HOLE, NOT_PACKED};
use super::inodes::{EXTENDED, FILE, FOLDER, NO_FRAGMENT};
use super::metadata;
use super::{BLOCK_BYTES, MAGIC, SUPERBLOCK_BYTES};

/// Maximum number of entries in all folders together. The format itself would allow 2^32 inodes.
const ENTRIES_MAX: u64 = 1 << 24;
/// Maximum depth of nested folders. Paths within Linux's `PATH_MAX` cannot be deeper.
const DEPTH_MAX: usize = 2048;
/// Maximum length of a folder's listing, in bytes.
const LISTING_BYTES_MAX: usize = 64 << 20;
/// Maximum length of a file that is read, in bytes. A file can be longer than its image, because an image does not
/// store blocks of zeros.
const FILE_BYTES_MAX: u64 = 4 << 30;
/// Maximum length of a name, in bytes. The format sets this bound.
const NAME_BYTES_MAX: usize = 256;

/// A source of an image's bytes.
pub(crate) trait Source {
    /// Fills `buffer` with the image's bytes from `offset` on.
    ///
    /// # Errors
    /// Returns an error if the bytes cannot be read, or if the image ends before the buffer is full.
    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

/// Reader of an image.
pub(crate) struct Reader<'a> {
    source: &'a dyn Source,
    inodes: u64,
    folders: u64,
    root: u64,
}

/// A regular file of an image.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// Length of the file in bytes.
    pub(crate) length: u64,
    start: u64,
    /// Size fields of the blocks, in the format's encoding.
    sizes: Vec<u32>,
}

/// Location and length of a folder's listing.
struct Folder {
    block: u32,
    offset: u16,
    bytes: usize,
}

enum Inode {
    Folder(Folder),
    File(File),
}

/// An entry of a listing that is a folder or a regular file.
struct Entry {
    name: Vec<u8>,
    reference: u64,
}

impl<'a> Reader<'a> {
    /// Reads an image's superblock.
    ///
    /// # Errors
    /// Returns an error if the image cannot be read, or if this module cannot have written it.
    pub(crate) fn new(source: &'a dyn Source) -> io::Result<Reader<'a>> {
        let mut block = [0; SUPERBLOCK_BYTES as usize];
        source.read(&mut block, 0)?;
        let mut fields = Fields(&block);
        if fields.u32()? != MAGIC {
            return Err(damaged("it is no SquashFS image"));
        }
        // Skips the number of inodes and the time.
        fields.take(8)?;
        if fields.u32()? != BLOCK_BYTES {
            return Err(damaged("its blocks have another size than those that Everett writes"));
        }
        // Skips fragments, compression, the logarithm of the block size, flags, the number of owners, and the version.
        fields.take(16)?;
        let root = fields.u64()?;
        // Skips the length, the owners and the attributes.
        fields.take(24)?;
        Ok(Reader { source, root, inodes: fields.u64()?, folders: fields.u64()? })
    }

    /// Calls `visit` for each regular file, in the order of paths. A file with several names is visited once for each
    /// name.
    ///
    /// # Errors
    /// Returns an error if the image is damaged or `visit` returns an error.
    pub(crate) fn files(&self, visit: &mut dyn FnMut(&Path, &File) -> io::Result<()>) -> io::Result<()> {
        let Inode::Folder(root) = self.inode(self.root)? else { return Err(damaged("its root is a file")) };
        let mut left = ENTRIES_MAX;
        let mut path = PathBuf::from("/");
        let mut open = vec![self.listing(&root, &mut left)?.into_iter()];
        while let Some(entries) = open.last_mut() {
            let Some(entry) = entries.next() else {
                path.pop();
                open.pop();
                continue;
            };
            path.push(std::ffi::OsStr::from_bytes(&entry.name));
            match self.inode(entry.reference)? {
                Inode::Folder(_) if open.len() == DEPTH_MAX => {
                    return Err(damaged(format!("more than {DEPTH_MAX} folders within one another")));
                }
                Inode::Folder(folder) => open.push(self.listing(&folder, &mut left)?.into_iter()),
                Inode::File(file) => {
                    visit(&path, &file)?;
                    path.pop();
                }
            }
        }
        Ok(())
    }

    /// Appends the first `length` bytes of a file to `content`. If the file is shorter, appends the whole file.
    ///
    /// # Errors
    /// Returns an error if the image is damaged, or if more than [`FILE_BYTES_MAX`] bytes would be read.
    pub(crate) fn read(&self, file: &File, length: u64, content: &mut Vec<u8>) -> io::Result<()> {
        let mut left = length.min(file.length);
        if left > FILE_BYTES_MAX {
            return Err(damaged(format!("a file of {left} bytes; at most {FILE_BYTES_MAX} are read")));
        }
        let (mut at, mut end) = (file.start, file.length);
        for &size in &file.sizes {
            let whole = end.min(BLOCK_BYTES.into());
            end -= whole;
            let wanted = left.min(whole);
            // `wanted` is at most the length of a block, so it fits into `usize`.
            let filled = content.len();
            content.resize(filled + wanted as usize, 0);
            if size != HOLE {
                if u64::from(size) != u64::from(NOT_PACKED) | whole {
                    return Err(damaged("a block is compressed, or has another length than its file says"));
                }
                self.source.read(&mut content[filled..], at)?;
                at = at.saturating_add(whole);
            }
            left -= wanted;
            if left == 0 {
                break;
            }
        }
        Ok(())
    }

    fn inode(&self, reference: u64) -> io::Result<Inode> {
        let block = reference >> 16;
        let mut table = Table::at(self.source, self.inodes, block, reference as u16)?;
        let head = table.take(16)?;
        let kind = Fields(&head).u16()?;
        if kind == FOLDER {
            let rest = table.take(16)?;
            let mut fields = Fields(&rest);
            let (block, _links, bytes, offset) = (fields.u32()?, fields.u32()?, fields.u16()?, fields.u16()?);
            return Folder::new(block, offset, bytes.into()).map(Inode::Folder);
        }
        if kind == FOLDER + EXTENDED {
            let rest = table.take(20)?;
            let mut fields = Fields(&rest);
            let (_links, bytes, block, _parent) =
                (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
            let _entries = fields.u16()?;
            return Folder::new(block, fields.u16()?, bytes as usize).map(Inode::Folder);
        }
        let (start, length, fragment) = if kind == FILE {
            let rest = table.take(16)?;
            let mut fields = Fields(&rest);
            let (start, fragment, _offset) = (fields.u32()?, fields.u32()?, fields.u32()?);
            (start.into(), fields.u32()?.into(), fragment)
        } else if kind == FILE + EXTENDED {
            let rest = table.take(40)?;
            let mut fields = Fields(&rest);
            let (start, length, _sparse, _links) =
                (fields.u64()?, fields.u64()?, fields.u64()?, fields.u32()?);
            (start, length, fields.u32()?)
        } else {
            return Err(damaged(format!("an inode of kind {kind} in place of a file or a folder")));
        };
        if fragment != NO_FRAGMENT {
            return Err(damaged("a file has a fragment"));
        }
        let blocks = length.div_ceil(BLOCK_BYTES.into());
        // Reads no more size fields than `read` can use: it refuses to read more than `FILE_BYTES_MAX` bytes of a file.
        let blocks = blocks.min(FILE_BYTES_MAX / u64::from(BLOCK_BYTES));
        let sizes = table.take(blocks as usize * 4)?;
        let sizes = sizes.chunks_exact(4).map(|size| Fields(size).u32()).collect::<io::Result<_>>()?;
        Ok(Inode::File(File { length, start, sizes }))
    }

    /// Returns the folders and regular files of a listing. `left` is the number of entries that the reader still
    /// accepts. Each entry of the listing reduces this number by one.
    fn listing(&self, folder: &Folder, left: &mut u64) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        if folder.bytes == 0 {
            return Ok(entries);
        }
        if folder.bytes > LISTING_BYTES_MAX {
            return Err(damaged(format!("a folder's listing has more than {LISTING_BYTES_MAX} bytes")));
        }
        let bytes =
            Table::at(self.source, self.folders, folder.block.into(), folder.offset)?.take(folder.bytes)?;
        let mut fields = Fields(&bytes);
        while !fields.0.is_empty() {
            let (count, block, _number) = (fields.u32()?, fields.u32()?, fields.u32()?);
            for _ in 0..=count {
                *left =
                    left.checked_sub(1).ok_or_else(|| damaged(format!("more than {ENTRIES_MAX} entries")))?;
                let (offset, _number, kind, length) =
                    (fields.u16()?, fields.u16()?, fields.u16()?, fields.u16()?);
                let length = usize::from(length) + 1;
                if length > NAME_BYTES_MAX {
                    return Err(damaged("a name is too long"));
                }
                let name = fields.take(length)?.to_vec();
                if name.contains(&b'/') || name == b"." || name == b".." {
                    return Err(damaged("a name is a path"));
                }
                if kind == FOLDER || kind == FILE {
                    entries.push(Entry { name, reference: u64::from(block) << 16 | u64::from(offset) });
                }
            }
        }
        Ok(entries)
    }
}

impl Folder {
    /// Returns a folder, given the length field of its inode, which is three more than the listing's length.
    fn new(block: u32, offset: u16, bytes: usize) -> io::Result<Folder> {
        let bytes = bytes.checked_sub(3).ok_or_else(|| damaged("a folder's length is below 3"))?;
        Ok(Folder { block, offset, bytes })
    }
}

/// Reader of a table: a stream of blocks of up to 8 KiB, each after a header of two bytes.
struct Table<'a> {
    source: &'a dyn Source,
    /// Offset of the next block's header in the image.
    next: u64,
    /// Content of the current block. `read` is the number of its bytes that were already read.
    block: Vec<u8>,
    read: usize,
}

impl<'a> Table<'a> {
    /// Returns a reader that starts at `offset` in a block's content. The block is at `block` in the table, and the
    /// table is at `start` in the image.
    fn at(source: &'a dyn Source, start: u64, block: u64, offset: u16) -> io::Result<Table<'a>> {
        let next = start.checked_add(block).ok_or_else(|| damaged("a table's position"))?;
        let mut table = Table { source, next, block: Vec::new(), read: 0 };
        table.load()?;
        table.read = offset.into();
        if table.read > table.block.len() {
            return Err(damaged("a position behind its block"));
        }
        Ok(table)
    }

    fn load(&mut self) -> io::Result<()> {
        let mut header = [0; 2];
        self.source.read(&mut header, self.next)?;
        let header = u16::from_le_bytes(header);
        let length = usize::from(header & !metadata::NOT_PACKED);
        if header & metadata::NOT_PACKED == 0 || length == 0 || length > metadata::BLOCK_BYTES {
            return Err(damaged("a table's block is compressed, empty or too long"));
        }
        self.block.resize(length, 0);
        self.source.read(&mut self.block, self.next.saturating_add(2))?;
        self.next = self.next.saturating_add(2 + length as u64);
        self.read = 0;
        Ok(())
    }

    /// Returns the next `length` bytes of the table's content.
    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < length {
            if self.read == self.block.len() {
                self.load()?;
            }
            let end = self.block.len().min(self.read + length - bytes.len());
            bytes.extend_from_slice(&self.block[self.read..end]);
            self.read = end;
        }
        Ok(bytes)
    }
}

/// Reader of consecutive little-endian fields.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(|| damaged("a table ends early"))?;
        self.0 = rest;
        Ok(taken)
    }
    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(|| damaged("a table ends early"))?;
        self.0 = rest;
        Ok(*taken)
    }
    fn u16(&mut self) -> io::Result<u16> {
        self.array().map(u16::from_le_bytes)
    }
    fn u32(&mut self) -> io::Result<u32> {
        self.array().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> io::Result<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the image is damaged: {}", what.into()))
}

//! Moments on disk. A moment consists of states, images and trees. A state is bytes that only the caller understands.
//! An image is a memory or a disk, stored as the pages that differ from its initial content (base). A tree is a map of
//! changed pages whose initial content only the caller knows.
//!
//! - `head`: the description that can be read without the file's other parts; `write`, `read`: the whole file
//!
//! The format of a moment file (offset, length, content):
//!
//! ```text
//!          0   8  magic "EVERMMNT"
//!          8   4  format version
//!         12   4  H: bytes of the head
//!         16  32  blake3 of bytes 0..16 and 48..H
//!         48 H-48 state version (4), vtime (8), seed (8), key (32), bytes of states (8), number of entries of
//!                 images and trees (8), number of distinct pages (8), bytes of the file (8); directory: bytes
//!                 compressed (8), bytes decompressed (8), blake3 of its compressed bytes (32); label: bytes (4)
//!                 and UTF-8
//!          H      chunks, each zstd: all states concatenated and cut into pieces of 256 KiB, then the
//!                 distinct pages, 64 to a chunk, in the order in which the directory first names them
//!        end      directory, zstd
//! ```
//!
//! The format of its directory (varint: LEB128):
//!
//! ```text
//! each chunk:  bytes compressed (4), blake3 of its compressed bytes (32)
//! states:      count (4); each: name, bytes (8)
//! images:      count (4); each: name, base: 0, or 1 and its digest (32); pages (8), entries
//! trees:       count (4); each: name, entries
//! name:        bytes (2), UTF-8; ascending within each kind
//! entries:     count (8); each: varint: page numbers skipped since the previous entry;
//!              varint: 0 for a page of zeroes, n + 1 for distinct page n
//! ```
//!
//! Elsewhere: the contents of bases, which are separate files ([`crate::file`]), and the meaning of the states.

mod head;
mod read;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::Base;
use crate::file::map::MappedFile;
use crate::file::{BaseDigest, FileError};
use crate::image::PageImage;
use crate::page::{PAGE, Pool};
use crate::tree::Tree;
use head::Head;

/// Version of the format.
pub const MOMENT_FORMAT: u32 = 1;
/// Maximum length of a label in bytes.
pub const LABEL_BYTES_MAX: usize = 4096;
/// Maximum length of a part's name in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Maximum number of parts of each kind (states, images, trees).
pub const PARTS_MAX: usize = 4096;
/// Maximum size of all states together, in bytes.
pub const STATE_BYTES_MAX: u64 = 1 << 30;
/// Maximum number of entries of all images and trees: 64 GiB of pages.
pub const ENTRIES_MAX: u64 = 1 << 24;

/// Maximum number of pages in an image or tree: 16 TiB.
pub const IMAGE_PAGES_MAX: u64 = 1 << 32;
/// Maximum size of a directory in bytes. It suffices for [`ENTRIES_MAX`] entries of at most 14 bytes, and for the list
/// of chunks.
const DIRECTORY_BYTES_MAX: u64 = 1 << 28;
/// Size of a chunk in bytes before compression. The last chunk of the states and the last chunk of the pages may be
/// smaller.
const CHUNK_BYTES: usize = CHUNK_PAGES * PAGE;
const CHUNK_PAGES: usize = 64;
const MAGIC: [u8; 8] = *b"EVERMMNT";
const KIND: &str = "moment";

/// Description of a moment, which the caller provides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MomentInfo {
    /// Text for a list of moments, at most [`LABEL_BYTES_MAX`] bytes.
    pub label: String,
    /// vtime of the moment, in nanoseconds since boot.
    pub vtime: u64,
    /// Seed of the timeline or, for a moment from before the timeline begins, seed with which the machines booted.
    pub seed: u64,
    /// Identifies the machines of the moment. The caller computes and compares it.
    pub key: [u8; 32],
    /// Version of the states. The caller sets and compares it.
    pub state_version: u32,
}

/// Description of a moment and its file, stored in the file's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MomentHeader {
    /// The caller's description.
    pub info: MomentInfo,
    /// Size of all states together, in bytes.
    pub state_bytes: u64,
    /// Number of entries of all images and trees.
    pub delta_pages: u64,
    /// Number of different page contents in these entries.
    pub distinct_pages: u64,
    /// Size of the file in bytes.
    pub file_bytes: u64,
}

/// Parts of a moment, each with a name. Names have at most [`NAME_BYTES_MAX`] bytes. There are at most [`PARTS_MAX`]
/// parts of each kind.
#[derive(Debug, Clone, Default)]
pub struct MomentParts {
    /// States, whose bytes only the caller understands. At most [`STATE_BYTES_MAX`] in total.
    pub states: BTreeMap<String, Arc<[u8]>>,
    /// Images. Their bases are not stored, only the digests of the bases.
    pub images: BTreeMap<String, PageImage>,
    /// Maps of changed pages whose initial content only the caller knows.
    pub trees: BTreeMap<String, Tree>,
}

/// A mapped moment file. While it is open, no program may change or truncate the file. Unlinking it is allowed.
pub struct MomentFile {
    path: PathBuf,
    map: MappedFile,
    head: Head,
}

impl MomentFile {
    /// Writes a moment file, atomically and durably.
    ///
    /// # Errors
    /// Returns an error if a part exceeds its maximum, or if the host refuses, for example because the disk is full. An
    /// earlier file under this name then stays, unless only the final sync of the folder failed.
    pub fn write(path: &Path, info: &MomentInfo, parts: &MomentParts) -> Result<MomentHeader, FileError> {
        write::write(path, info, parts)
    }

    /// Maps a moment file, and verifies its head and its length. The caller promises that no program changes or
    /// truncates the file while it is open.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, is not a moment file of this format, or has a damaged head or a
    /// wrong length.
    pub fn open(path: &Path) -> Result<MomentFile, FileError> {
        let map = MappedFile::open(path).map_err(FileError::io(path, "open"))?;
        let head = head::read(path, map.bytes())?;
        Ok(MomentFile { path: path.to_owned(), map, head })
    }

    /// Returns the description of the moment and its file.
    pub fn header(&self) -> &MomentHeader {
        &self.head.header
    }

    /// Reads all parts and adds their pages to `pool`. `bases` returns the base with a given digest, or `None` if it is
    /// missing.
    ///
    /// # Errors
    /// Returns an error if the file is damaged in any bit or a base is missing.
    pub fn read(
        &self,
        pool: &Pool,
        mut bases: impl FnMut(BaseDigest) -> Option<Arc<Base>>,
    ) -> Result<MomentParts, FileError> {
        read::read(&self.path, self.map.bytes(), &self.head, pool, &mut bases)
    }
}

impl fmt::Debug for MomentFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MomentFile({}, {:?})", self.path.display(), self.head.header)
    }
}

/// Returns the number of chunks of states, and the number of chunks of pages.
fn chunks(state_bytes: u64, distinct_pages: u64) -> (u64, u64) {
    (state_bytes.div_ceil(CHUNK_BYTES as u64), distinct_pages.div_ceil(CHUNK_PAGES as u64))
}

#[cfg(test)]
mod tests;

//! Moments on disk: states, which are bytes of the caller's, and what images have over their bases.
//!
//! - `head`: what is known without decoding the rest; `write`, `read`: the rest
//!
//! A moment file:
//!
//! ```text
//!          0   8  magic "EVERMMNT"
//!          8   4  format version
//!         12   4  H: bytes of the head
//!         16  32  blake3 of bytes 0..16 and 48..H
//!         48   H  state version (4), vtime (8), seed (8), key (32), bytes of states (8), entries of images and trees (8),
//!                 distinct pages (8), bytes of the file (8), directory: stored bytes (8), bytes (8), blake3 as stored (32);
//!                 label: bytes (4) and UTF-8
//!          H      chunks, one after the other, each zstd: all states behind each other in pieces of 256 KiB, then the
//!                 distinct pages, 64 to a chunk, in the order in which the directory first names them
//!        end      directory, zstd
//! ```
//!
//! and its directory (varint: LEB128):
//!
//! ```text
//! each chunk:  stored bytes (4), blake3 as stored (32)
//! states:      count (4); each: name, bytes (8)
//! images:      count (4); each: name, base: 0, or 1 and its digest (32); pages (8), entries
//! trees:       count (4); each: name, entries
//! name:        bytes (2), UTF-8; ascending within each kind
//! entries:     count (8); each: varint of how many page numbers after the one before were left out,
//!              varint 0: a page of zeroes, n + 1: distinct page n
//! ```
//!
//! Not here: the contents of bases, which are files of their own ([`crate::file`]), and what the states mean.

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
use crate::image::Image;
use crate::page::{PAGE, Pool};
use crate::tree::Tree;
use head::Head;

/// The version of the format.
pub const MOMENT_FORMAT: u32 = 1;
/// The most bytes of a label.
pub const LABEL_BYTES_MAX: usize = 4096;
/// The most bytes of a part's name.
pub const NAME_BYTES_MAX: usize = 255;
/// The most parts of a kind.
pub const PARTS_MAX: usize = 4096;
/// The most bytes of all states.
pub const STATE_BYTES_MAX: u64 = 1 << 30;
/// The most entries of all images and trees: 64 GiB of pages.
pub const ENTRIES_MAX: u64 = 1 << 24;

/// The most pages of an image or of what a tree is over: 16 TiB.
pub const IMAGE_PAGES_MAX: u64 = 1 << 32;
/// The most bytes of a directory: that of [`ENTRIES_MAX`] entries of at most 14 bytes and of the chunks they need.
const DIRECTORY_BYTES_MAX: u64 = 1 << 28;
/// Bytes of a chunk before it is compressed; the last one of states and the last one of pages may have fewer.
const CHUNK_BYTES: usize = CHUNK_PAGES * PAGE;
const CHUNK_PAGES: usize = 64;
const MAGIC: [u8; 8] = *b"EVERMMNT";
const KIND: &str = "moment";

/// What the caller says about a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MomentInfo {
    /// A text for lists. At most [`LABEL_BYTES_MAX`] bytes.
    pub label: String,
    /// Nanoseconds of vtime since boot.
    pub vtime: u64,
    /// The seed.
    pub seed: u64,
    /// What the moment is of, for the caller to compare.
    pub key: [u8; 32],
    /// The version of the states, for the caller to compare.
    pub state_version: u32,
}

/// What a file says about itself at its front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MomentHeader {
    /// What the caller said about it.
    pub info: MomentInfo,
    /// Bytes of all states.
    pub state_bytes: u64,
    /// Entries of all images and trees.
    pub delta_pages: u64,
    /// Pages with different contents among them.
    pub distinct_pages: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

/// What a moment consists of, by name. Names have at most [`NAME_BYTES_MAX`] bytes, and there are at most [`PARTS_MAX`] of a
/// kind.
#[derive(Debug, Clone, Default)]
pub struct MomentParts {
    /// Bytes that the caller reads, at most [`STATE_BYTES_MAX`] in all.
    pub states: BTreeMap<String, Arc<[u8]>>,
    /// Images; of their bases, the digests are stored.
    pub images: BTreeMap<String, Image>,
    /// Pages over something that only the caller knows.
    pub trees: BTreeMap<String, Tree>,
}

/// A mapped moment. While it is open the file must not be changed or truncated; it may be unlinked.
pub struct MomentFile {
    path: PathBuf,
    map: MappedFile,
    head: Head,
}

impl MomentFile {
    /// Write a moment, atomically and durably.
    ///
    /// # Errors
    /// When something is beyond its maximum or the host refuses (a full disk, say). What was under this name before is
    /// still there then, and no other file is.
    pub fn write(path: &Path, info: &MomentInfo, parts: &MomentParts) -> Result<MomentHeader, FileError> {
        write::write(path, info, parts)
    }

    /// Map a moment and verify its head and its length. The caller promises that nobody changes or truncates the file while
    /// it is open.
    ///
    /// # Errors
    /// When it cannot be opened, is no moment of this format, or has a damaged head or another length.
    pub fn open(path: &Path) -> Result<MomentFile, FileError> {
        let map = MappedFile::open(path).map_err(FileError::io(path, "open"))?;
        let head = head::read(path, map.bytes())?;
        Ok(MomentFile { path: path.to_owned(), map, head })
    }

    /// What it says about itself.
    pub fn header(&self) -> &MomentHeader {
        &self.head.header
    }

    /// Read all of it. Pages go to `pool`; `bases` finds the base with a digest.
    ///
    /// # Errors
    /// When it is damaged in any bit, and when a base is missing.
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

/// Chunks that the states and the pages need.
fn chunks(state_bytes: u64, distinct_pages: u64) -> (u64, u64) {
    (state_bytes.div_ceil(CHUNK_BYTES as u64), distinct_pages.div_ceil(CHUNK_PAGES as u64))
}

#[cfg(test)]
mod tests;

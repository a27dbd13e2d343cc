//! Bases and moments on disk.
//!
//! - `base_file`: [`BaseFile`], the pages of an image as they are, to be mapped; `presence`: which of them are there
//! - `moment`: [`MomentFile`], states and images of a moment, compressed
//! - `atomic`: a file is there whole or not at all; [`sweep_temporaries`]
//! - `map`: mapping files (`unsafe`); `wire`: little-endian numbers
//!
//! All numbers are little-endian. A base file:
//!
//! ```text
//!          0   8  magic "EVERBASE"
//!          8   4  format version
//!         12   4  P: bytes of the compressed bitmap
//!         16   8  pages of the image
//!         24   8  N: pages that are there; all others are zeroes
//!         32   8  D: where the data begins, a multiple of 4096
//!         40  32  digest: blake3 of bytes 0..40 and 72..D. It names the base
//!         72   P  bitmap of the pages that are there, a bit a page from the least significant on, zstd
//!       72+P 32N  their hashes, ascending by page number
//!          .      zeroes up to D
//! D + 4096*n 4096 page n; a hole where it is not there
//! ```
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
//! **Invariants.**
//! - Every byte is covered by a blake3 that is checked before it is used, or must be zero.
//! - Nothing is allocated for a length or count that is beyond its named maximum.
//! - Files are written once, under another name, and never in place. **Whoever opens one promises that nobody truncates or
//!   changes it while it is mapped**; unlinking it is fine.
//!
//! Not here: which files there are, where they lie and when they go.

mod atomic;
mod base_file;
mod map;
mod moment;
mod presence;
mod wire;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub use atomic::{TEMPORARY_PREFIX, sweep_temporaries};
pub use base_file::{BASE_FORMAT, BASE_PAGES_MAX, BaseFile};
pub use moment::{
    ENTRIES_MAX, IMAGE_PAGES_MAX, LABEL_BYTES_MAX, MOMENT_FORMAT, MomentFile, MomentHeader, MomentInfo,
    MomentParts, NAME_BYTES_MAX, PARTS_MAX, STATE_BYTES_MAX,
};

/// The digest of a base file, which names the base. `{}` shows the first eight bytes, `{:#}` all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BaseDigest(pub [u8; 32]);

impl fmt::Display for BaseDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if f.alternate() { 32 } else { 8 };
        self.0[..shown].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
impl fmt::Debug for BaseDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BaseDigest({self})")
    }
}

/// Why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The host refused.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried: a verb.
        what: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It begins with something else.
    #[error("{}: this is no {kind} file", path.display())]
    Magic {
        /// The file.
        path: PathBuf,
        /// What it should be.
        kind: &'static str,
    },
    /// Another version wrote it.
    #[error("{}: {kind} file of format {found}, this version reads {reads}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
        /// Its format.
        found: u32,
        /// The one that can be read.
        reads: u32,
    },
    /// It is not as it was written, or was not written by this program.
    #[error("{}: damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// An image is on a base that is not there.
    #[error("{}: image {image} needs base {base:#}, which is missing", path.display())]
    MissingBase {
        /// The file.
        path: PathBuf,
        /// The image in it.
        image: String,
        /// The digest of the base.
        base: BaseDigest,
    },
    /// What should be written is beyond the format.
    #[error("{}: {count} {what}, at most {max} can be stored", path.display())]
    TooMany {
        /// The file.
        path: PathBuf,
        /// Of what.
        what: &'static str,
        /// How many.
        count: u64,
        /// The maximum.
        max: u64,
    },
}

impl FileError {
    fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> FileError {
        move |source| FileError::Io { path: path.to_owned(), what, source }
    }
    fn damaged(path: &Path, what: impl Into<String>) -> FileError {
        FileError::Damaged { path: path.to_owned(), what: what.into() }
    }
    fn at_most(path: &Path, what: &'static str, count: u64, max: u64) -> Result<(), FileError> {
        if count > max {
            return Err(FileError::TooMany { path: path.to_owned(), what, count, max });
        }
        Ok(())
    }
}

/// The level at which everything is compressed: restoring is what counts, and writing must not be slow.
const ZSTD_LEVEL: i32 = 3;

/// blake3 of two pieces of a file: what lies before its own checksum and what lies after it.
fn checksum(before: &[u8], after: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new().update(before).update(after).finalize().as_bytes()
}

/// Check magic and version, which every file begins with.
fn check_kind(
    path: &Path,
    bytes: &[u8],
    kind: &'static str,
    magic: [u8; 8],
    reads: u32,
) -> Result<(), FileError> {
    let mut reader = wire::Reader::new(bytes);
    if reader.array() != Some(magic) {
        return Err(FileError::Magic { path: path.to_owned(), kind });
    }
    match reader.u32() {
        Some(found) if found == reads => Ok(()),
        Some(found) => Err(FileError::Format { path: path.to_owned(), kind, found, reads }),
        None => Err(FileError::damaged(path, "it ends in its head")),
    }
}

/// Decompress what must come to exactly `len` bytes.
fn decompress(stored: &[u8], len: usize) -> Option<Vec<u8>> {
    let bytes = zstd::bulk::decompress(stored, len).ok()?;
    (bytes.len() == len).then_some(bytes)
}

#[cfg(test)]
mod tests;

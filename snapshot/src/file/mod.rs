//! Files that hold pages: how they are written, checked and mapped, and the format of bases.
//!
//! - `base_file`: [`BaseFile`], the pages of an image as they are, to be mapped; `presence`: which of them are there
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
//! **Invariants.**
//! - Every byte is covered by a blake3 that is checked before it is used, or must be zero.
//! - Nothing is allocated for a length or count that is beyond its named maximum.
//! - Files are written once, under another name, and never in place. **Whoever opens one promises that nobody truncates or
//!   changes it while it is mapped**; unlinking it is fine.
//!
//! Not here: files of moments ([`crate::moment`]), which files there are, where they lie and when they go.

pub(crate) mod atomic;
mod base_file;
pub(crate) mod map;
mod presence;
pub(crate) mod wire;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub use atomic::{TEMPORARY_PREFIX, sweep_temporaries};
pub use base_file::{BASE_FORMAT, BASE_PAGES_MAX, BaseFile};

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
    pub(crate) fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> FileError {
        move |source| FileError::Io { path: path.to_owned(), what, source }
    }
    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> FileError {
        FileError::Damaged { path: path.to_owned(), what: what.into() }
    }
    pub(crate) fn at_most(path: &Path, what: &'static str, count: u64, max: u64) -> Result<(), FileError> {
        if count > max {
            return Err(FileError::TooMany { path: path.to_owned(), what, count, max });
        }
        Ok(())
    }
}

/// The level at which everything is compressed: restoring is what counts, and writing must not be slow.
pub(crate) const ZSTD_LEVEL: i32 = 3;

/// blake3 of two pieces of a file: what lies before its own checksum and what lies after it.
pub(crate) fn checksum(before: &[u8], after: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new().update(before).update(after).finalize().as_bytes()
}

/// Check magic and version, which every file begins with.
pub(crate) fn check_kind(
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
pub(crate) fn decompress(stored: &[u8], len: usize) -> Option<Vec<u8>> {
    let bytes = zstd::bulk::decompress(stored, len).ok()?;
    (bytes.len() == len).then_some(bytes)
}

#[cfg(test)]
mod tests;

//! Files that hold pages: how they are written, verified and mapped, and the format of base files.
//!
//! - `base_file`: [`BaseFile`], a base, i.e. the mapped pages of an image (the content of a memory or a disk), from a
//!   file or in the host's memory; `presence`: the bitmap of the image's nonzero pages
//! - `atomic`: atomic file writes; [`sweep_temporaries`]
//! - `map`: mapping of files (`unsafe`); `wire`: little-endian numbers
//!
//! All numbers are little-endian. The format of a base file (offset, length, content):
//!
//! ```text
//!          0   8  magic "EVERBASE"
//!          8   4  format version
//!         12   4  P: bytes of the compressed bitmap
//!         16   8  pages of the image
//!         24   8  N: pages that are present; all others are zeroes
//!         32   8  D: offset of the data, a multiple of 4096
//!         40  32  digest: blake3 of bytes 0..40 and 72..D. It identifies the base
//!         72   P  bitmap of present pages, one bit a page, least significant first, zstd
//!       72+P 32N  their hashes, ascending by page number
//!          .      zeroes up to D
//! D + 4096*n 4096 page n; a hole if it is not present
//! ```
//!
//! **Invariants.**
//! - Every byte either must be zero, or is covered by a BLAKE3 hash that is verified before the byte is used.
//! - Everett compares each length or count in a file with its named maximum before it allocates memory for it.
//! - A file is written once, under a temporary name, and then renamed. It is never changed in place. **A
//!   caller that opens a file promises that no program truncates or changes it while it is mapped.** Unlinking the file
//!   is allowed.
//!
//! Elsewhere: files of moments ([`crate::moment`]). Callers choose which files exist, where, and when they are deleted.

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

/// Digest of a base, by which files refer to it. `{}` shows its first eight bytes, `{:#}` all.
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

/// Error of reading or writing a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system returned an error.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Operation that failed, as a verb.
        what: &'static str,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The file does not begin with the expected magic.
    #[error("{}: not a {kind} file", path.display())]
    Magic {
        /// Path of the file.
        path: PathBuf,
        /// Expected kind of file.
        kind: &'static str,
    },
    /// The file has a format version that this program cannot read.
    #[error("{}: {kind} file of format {found}, this version reads {reads}", path.display())]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// Kind of the file.
        kind: &'static str,
        /// Format version of the file.
        found: u32,
        /// Format version that this program reads.
        reads: u32,
    },
    /// The file was changed after it was written, or this program did not write it.
    #[error("{}: damaged: {what}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the damage.
        what: String,
    },
    /// The moment's image needs a base that the caller does not have.
    #[error("{}: image {image} needs base {base:#}, which is missing", path.display())]
    MissingBase {
        /// Path of the file.
        path: PathBuf,
        /// Name of the image in the file.
        image: String,
        /// Digest of the missing base.
        base: BaseDigest,
    },
    /// The caller's data exceeds a maximum of the format.
    #[error("{}: {count} {what}, at most {max} can be stored", path.display())]
    TooMany {
        /// Path of the file.
        path: PathBuf,
        /// Name of the counted items, in the plural.
        what: &'static str,
        /// Number of items.
        count: u64,
        /// Maximum number of items.
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

/// zstd level for all compressed data. Restoring must be fast, and writing must not be slow. Levels above 3 need
/// compressors that `.cargo/config.toml` leaves out; zstd would then silently use the compressor of level 3.
pub(crate) const ZSTD_LEVEL: i32 = 3;

/// Returns the checksum that a file stores: the BLAKE3 hash of the covered bytes before the checksum's place in the
/// file, followed by the covered bytes after this place.
pub(crate) fn checksum(before: &[u8], after: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new().update(before).update(after).finalize().as_bytes()
}

/// Checks the magic and the format version at the beginning of a file.
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
        None => Err(FileError::damaged(path, "it ends within its head")),
    }
}

/// Decompresses `stored`. Returns `None` unless the result has exactly `len` bytes.
pub(crate) fn decompress(stored: &[u8], len: usize) -> Option<Vec<u8>> {
    let bytes = zstd::bulk::decompress(stored, len).ok()?;
    (bytes.len() == len).then_some(bytes)
}

#[cfg(test)]
mod tests;

//! Errors of finding files. Each is one line, to which the caller adds the file's name.

use std::io;

use crate::limits::{EXPANSION_MAX, MEMBERS_MAX, TOTAL_BYTES_MAX};

/// Reason why a finding file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not a finding file.
    #[error("this is not a finding file")]
    Format,
    /// The file has a version of the format that this Everett cannot read.
    #[error("format version {found}; this Everett reads format version {known}")]
    Version {
        /// Version of the file.
        found: u64,
        /// Version that this Everett reads.
        known: u64,
    },
    /// The file ends early, or cannot be decompressed.
    #[error("it is cut off or damaged")]
    Damaged(#[source] io::Error),
    /// The manifest is invalid.
    #[error("manifest.json: {0}")]
    Manifest(String),
    /// The name of a member breaks a rule of [`check_name`](crate::check_name): for example, it is too long or contains
    /// `..`.
    #[error("manifest.json: {0:?} is not a name that a member can have")]
    Name(String),
    /// The manifest announces this member, but the archive has something else in its position.
    #[error("it is damaged: the manifest announces {0}, and something else is there")]
    Member(String),
    /// The content of a member does not have the digest in the manifest.
    #[error("{name} is damaged: its BLAKE3 is {found}, and the manifest says {expected}")]
    Digest {
        /// Name of the member.
        name: String,
        /// BLAKE3 in the manifest.
        expected: String,
        /// BLAKE3 of the content.
        found: String,
    },
    /// The archive continues after the last member of the manifest.
    #[error("it has more than its manifest announces")]
    More,
    /// The number of members exceeds the bound.
    #[error("it has more than {MEMBERS_MAX} members")]
    Members,
    /// The total length of the members exceeds the bound.
    #[error("{name} makes it too long: a finding file has at most {TOTAL_BYTES_MAX} bytes, unpacked")]
    Total {
        /// Name of the first member beyond the bound.
        name: String,
    },
    /// The ratio of unpacked to packed length exceeds the bound.
    #[error("it would unpack to {bytes} bytes, more than {EXPANSION_MAX} times its own length")]
    Expansion {
        /// Total length of the members, unpacked, in bytes.
        bytes: u64,
    },
    /// A file changed while the writer read it.
    #[error("{0} has changed while it was read")]
    Changed(String),
    /// A file cannot be read or written.
    #[error("{what}")]
    Io {
        /// Name of the file or member, or the failed action.
        what: String,
        /// Cause of the failure.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |source| Error::Io { what, source }
    }
}

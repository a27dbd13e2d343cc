//! Errors. Each is one line; the caller names the file.

use std::io;

use crate::limits::{EXPANSION_MAX, MEMBERS_MAX, TOTAL_BYTES_MAX};

/// Reason why a finding file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file has another format.
    #[error("this is not a finding file")]
    Format,
    /// The format has another version.
    #[error("format version {found}; this Everett reads format version {known}")]
    Version {
        /// Version of the file.
        found: u64,
        /// Version that is known.
        known: u64,
    },
    /// The file ends early, or cannot be unpacked.
    #[error("it is cut off or damaged")]
    Damaged(#[source] io::Error),
    /// The manifest is invalid.
    #[error("manifest.json: {0}")]
    Manifest(String),
    /// A member has a name that could lead out of a folder, or that is too long.
    #[error("manifest.json: {0:?} is not a name that a member can have")]
    Name(String),
    /// A member is not the one that the manifest announces.
    #[error("it is damaged: the manifest announces {0}, and something else is there")]
    Member(String),
    /// A member has another content.
    #[error("{name} is damaged: its BLAKE3 is {found}, and the manifest says {expected}")]
    Digest {
        /// Name of the member.
        name: String,
        /// Digest of the manifest.
        expected: String,
        /// Digest of the content.
        found: String,
    },
    /// Something follows the last member.
    #[error("it has more than its manifest announces")]
    More,
    /// There are too many members.
    #[error("it has more than {MEMBERS_MAX} members")]
    Members,
    /// The members are too long.
    #[error("{name} makes it too long: a finding file has at most {TOTAL_BYTES_MAX} bytes, unpacked")]
    Total {
        /// Name of the first member that is too much.
        name: String,
    },
    /// The file expands too much.
    #[error("it would unpack to {bytes} bytes, more than {EXPANSION_MAX} times its own length")]
    Expansion {
        /// Length of its members in bytes.
        bytes: u64,
    },
    /// A file changed while it was packed.
    #[error("{0} has changed while it was read")]
    Changed(String),
    /// A file cannot be read or written.
    #[error("{what}")]
    Io {
        /// The file or member.
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

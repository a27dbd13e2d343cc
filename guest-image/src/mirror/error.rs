//! Reasons why a mirror's packages cannot be used.

use std::io;

use everett_input::text::one_line;

use crate::apt;
use crate::debian;

/// Reason why packages cannot be obtained from a mirror.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address has another scheme.
    #[error("without apt-get, Everett fetches packages over http and https and from files, not from {0}")]
    Scheme(String),
    /// The file cannot be fetched.
    #[error("cannot fetch {address}: {}", one_line(reason))]
    Unreachable {
        /// Address of the file.
        address: String,
        /// Answer of the server, or what the network said.
        reason: String,
    },
    /// The file is longer than Everett's bound or its entry in the index.
    #[error("{address} has more than {most} bytes, the maximum for this file")]
    TooLong {
        /// Address of the file.
        address: String,
        /// The maximum length in bytes.
        most: u64,
    },
    /// The file is not the one that the signed index names.
    #[error(
        "{address} is not the file that the mirror's index names: its {what} is {found}, and {expected} was expected"
    )]
    Mismatch {
        /// Address of the file.
        address: String,
        /// "length" or "SHA-256".
        what: &'static str,
        /// Value in the index.
        expected: String,
        /// Value of the file.
        found: String,
    },
    /// No trusted key has signed the index.
    #[error("{address} is not signed by a key that is trusted: {}", one_line(reason))]
    Signature {
        /// Address of the index.
        address: String,
        /// Reason why its signatures are not accepted.
        reason: String,
    },
    /// A file with keys cannot be used.
    #[error("cannot use the keys in {path}: {}", one_line(reason))]
    Keys {
        /// Path or address of the file.
        path: String,
        /// Reason why it is refused.
        reason: String,
    },
    /// The index is malformed, or is of another suite.
    #[error("{address}: {}", one_line(problem))]
    Format {
        /// Address of the index.
        address: String,
        /// Description of the defect.
        problem: String,
    },
    /// The index is out of date.
    #[error("{address} expired on {date}: the mirror is out of date, or this host's clock is wrong")]
    Expired {
        /// Address of the index.
        address: String,
        /// The date in its field `Valid-Until`.
        date: String,
    },
    /// The index comes from the future.
    #[error("{address} is dated {date}, which is in the future: this host's clock is wrong")]
    Future {
        /// Address of the index.
        address: String,
        /// The date in its field `Date`.
        date: String,
    },
    /// The index is older than one that was seen before.
    #[error(
        "{address} is dated {date}, and this mirror had a newer one before: it is out of date, or hides updates"
    )]
    Older {
        /// Address of the index.
        address: String,
        /// The date in its field `Date`.
        date: String,
    },
    /// The package with the keys is damaged.
    #[error(transparent)]
    Debian(#[from] debian::Error),
    /// Any failure that apt's way has as well: an unknown package, a version that is gone, a full disk.
    #[error(transparent)]
    Package(#[from] apt::Error),
}

/// Returns the error of a file in the state folder.
pub(super) fn file_error(path: &std::path::Path) -> impl FnOnce(io::Error) -> Error + '_ {
    |source| apt::file_error(path)(source).into()
}

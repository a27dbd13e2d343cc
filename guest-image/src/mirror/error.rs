//! Errors of mirrors and of the packages that they serve. An *index* is a suite's signed file `InRelease`, which
//! contains the digests of the suite's lists of packages.

use std::io;

use everett_input::text::one_line;

use crate::apt;
use crate::debian;

/// Reason why packages cannot be obtained from a mirror.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address has a scheme that Everett does not support without apt.
    #[error("without apt-get, Everett fetches packages over http and https and from files, not from {0}")]
    Scheme(String),
    /// The file cannot be fetched.
    #[error("cannot fetch {address}: {}", one_line(reason))]
    Unreachable {
        /// Address of the file.
        address: String,
        /// Status of the server's answer, or description of the network's failure.
        reason: String,
    },
    /// The file is longer than Everett's bound, or longer than the mirror's index or list of packages says.
    #[error("{address} has more than {most} bytes, the maximum for this file")]
    TooLong {
        /// Address of the file.
        address: String,
        /// The maximum length in bytes.
        most: u64,
    },
    /// The length or digest of the file differs from the mirror's index or list of packages.
    #[error(
        "{address} is not the file that the mirror's index names: its {what} is {found}, and {expected} was expected"
    )]
    Mismatch {
        /// Address of the file.
        address: String,
        /// "length" or "SHA-256".
        what: &'static str,
        /// Value in the index or list.
        expected: String,
        /// Value of the file.
        found: String,
    },
    /// No trusted key has signed the index.
    #[error("{address} is not signed by a key that is trusted: {}", one_line(reason))]
    Signature {
        /// Address of the index.
        address: String,
        /// Reason why Everett does not accept the index's signatures.
        reason: String,
    },
    /// A file with keys cannot be used.
    #[error("cannot use the keys in {path}: {}", one_line(reason))]
    Keys {
        /// Path or address of the file.
        path: String,
        /// Reason why Everett refuses the file.
        reason: String,
    },
    /// The index or a list of packages is malformed, or the index belongs to another suite.
    #[error("{address}: {}", one_line(problem))]
    Format {
        /// Address of the index or list.
        address: String,
        /// Description of the defect.
        problem: String,
    },
    /// The index is out of date.
    #[error("{address} expired on {date}: the mirror is out of date, or this host's clock is wrong")]
    Expired {
        /// Address of the index.
        address: String,
        /// Date in the index's field `Valid-Until`.
        date: String,
    },
    /// The index is dated in the future.
    #[error("{address} is dated {date}, which is in the future: this host's clock is wrong")]
    Future {
        /// Address of the index.
        address: String,
        /// Date in the index's field `Date`.
        date: String,
    },
    /// The index is older than an index that this mirror served before.
    #[error(
        "{address} is dated {date}, and this mirror had a newer one before: it is out of date, or hides updates"
    )]
    Older {
        /// Address of the index.
        address: String,
        /// Date in the index's field `Date`.
        date: String,
    },
    /// The package with Debian's keys is damaged.
    #[error(transparent)]
    Debian(#[from] debian::Error),
    /// A failure that hosts with apt have, too: an unknown package, a version that is gone, a full disk.
    #[error(transparent)]
    Package(#[from] apt::Error),
}

/// Returns a function that turns an I/O error into an error that names `path`. The path is a file in the state folder,
/// in which Everett keeps lists of packages.
pub(super) fn file_error(path: &std::path::Path) -> impl FnOnce(io::Error) -> Error + '_ {
    |source| apt::file_error(path)(source).into()
}

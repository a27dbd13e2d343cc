//! Errors of lists and copies of files.

use super::fork::ForkError;
use super::limits::{ENTRIES_MAX, LEFT_OUT_MAX};

/// Error of a list or a copy.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The fork or the program in it failed.
    #[error(transparent)]
    Fork(#[from] ForkError),
    /// The caller ended the work.
    #[error("interrupted")]
    Interrupted,
    /// The guest has more files than the bound.
    #[error("there are more than {ENTRIES_MAX} files")]
    TooMany,
    /// More files cannot be copied than the bound.
    #[error("more than {LEFT_OUT_MAX} files cannot be read")]
    TooManyLeftOut,
    /// The files are too long.
    #[error("the files have more than {0} bytes")]
    TooLong(u64),
    /// The guest's names or structure are invalid.
    #[error("the machine has sent files that cannot exist: {0}")]
    Invalid(&'static str),
    /// The destination exists.
    #[error("{0}: it exists already; Everett overwrites nothing")]
    Exists(String),
    /// The host cannot write a file.
    #[error("{path}")]
    Write {
        /// Path of the file.
        path: String,
        /// Cause of the failure.
        source: std::io::Error,
    },
}

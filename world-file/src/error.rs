//! Errors in world files. An error is one line, `file:line: key: what`; an error about the whole file has no line or
//! key.

use std::fmt;
use std::path::{Path, PathBuf};

/// An error in a world file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Path of the world file, as the user gave it.
    pub file: PathBuf,
    /// Line in the file, counted from 1. `None` if the error is not about a single line.
    pub line: Option<usize>,
    /// Path of the key, such as `node[0].memory`. Empty if the error concerns the whole file.
    pub key: String,
    /// Description of the error.
    pub what: String,
}

impl Error {
    pub(super) fn whole(file: &Path, what: impl Into<String>) -> Error {
        Error { file: file.to_owned(), line: None, key: String::new(), what: what.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        // The message must stay one line even if it quotes line breaks from the file.
        write!(f, ": {}", self.what.replace(['\n', '\r'], " "))
    }
}

impl std::error::Error for Error {}

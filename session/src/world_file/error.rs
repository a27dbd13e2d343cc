//! What is wrong with a world file, as one line: `file:line: key: what`.

use std::fmt;
use std::path::{Path, PathBuf};

/// One defect of a world file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The world file, as it was named.
    pub file: PathBuf,
    /// Line, from 1; `None` when the file could not be read at all.
    pub line: Option<usize>,
    /// The key's path, such as `node[0].memory`; empty for the whole file.
    pub key: String,
    /// What is wrong with it.
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
        // A defect is one line whatever the file had in it.
        write!(f, ": {}", self.what.replace(['\n', '\r'], " "))
    }
}

impl std::error::Error for Error {}

//! Operations on a run directory's file of records: positioned reads and writes, and syncs.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::RunError;

/// Operations on the file of records. Tests implement them for files that lose writes or return errors.
pub(super) trait Media: Debug + Send + Sync {
    /// Reads up to `bytes.len()` bytes. Returns the number of bytes read, which is 0 only at the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all bytes. After an error, any part of the bytes may have been written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Truncates or extends the file to `length` bytes.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Makes all writes and the file's length durable.
    fn sync(&self) -> io::Result<()>;
    /// Returns the length of the file, in bytes.
    fn len(&self) -> io::Result<u64>;
}

impl Media for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        File::set_len(self, length)
    }

    fn sync(&self) -> io::Result<()> {
        // `sync_data` also makes the file's length durable, because the data cannot be read without the length.
        self.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// File of records and its path.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) file: Arc<dyn Media>,
    pub(super) path: PathBuf,
}

impl Source {
    /// Returns the length of the file, in bytes.
    pub(super) fn length(&self) -> Result<u64, RunError> {
        self.file.len().map_err(RunError::io("look at", &self.path))
    }

    /// Fills `bytes` from the file, starting at `offset`.
    pub(super) fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), RunError> {
        let mut at = At { source: self.clone(), offset, end: u64::MAX };
        at.read_exact(bytes).map_err(RunError::io("read", &self.path))
    }
}

/// Reader of a range of a file. Each reader has its own position, so readers of one file do not affect each other.
pub(super) struct At {
    pub(super) source: Source,
    pub(super) offset: u64,
    pub(super) end: u64,
}

impl Read for At {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let most = bytes.len().min(left);
        let read = match bytes.get_mut(..most) {
            Some(bytes) => self.source.file.read_at(bytes, self.offset)?,
            None => 0,
        };
        self.offset += read as u64;
        Ok(read)
    }
}

//! Files mapped read-only. All `unsafe` code of this crate is here.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

/// A mapped file, which stays open. An empty file has no mapping.
#[derive(Debug)]
pub(crate) struct MappedFile {
    file: Arc<File>,
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps a whole file. The caller promises that the file is not truncated or changed while it is mapped (see the
    /// parent module).
    pub(crate) fn open(path: &Path) -> io::Result<MappedFile> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let map = match metadata.len() {
            0 => None,
            // SAFETY: files of this crate are written under another name, renamed, and never written in place. They
            // may be unlinked while they are mapped, which leaves the mapping intact. The callers of `BaseFile::open`
            // and `MomentFile::open` promise, as documented there, that no other program changes or truncates the
            // file.
            _ => Some(unsafe { Mmap::map(&file)? }),
        };
        Ok(MappedFile { file: Arc::new(file), map })
    }
    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&[])
    }
    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }
}

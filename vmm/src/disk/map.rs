//! A file mapped read-only. Contains all `unsafe` code of this folder.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// Mapped file. An empty file has no mapping.
#[derive(Debug)]
pub(super) struct MappedFile {
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps a whole file.
    pub(super) fn open(path: &Path) -> io::Result<MappedFile> {
        let file = File::open(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(MappedFile { map: None });
        }
        // SAFETY: images are kept by digest in a cache or a run directory, where files are never written in place but
        // replaced by rename; `Disk::open` requires its caller to ensure this.
        let map = unsafe { Mmap::map(&file)? };
        Ok(MappedFile { map: Some(map) })
    }

    /// Returns the content of the file.
    pub(super) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&[])
    }
}

//! Mapping of a read-only file. All `unsafe` code of this folder is here.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// Read-only mapping of a file. An empty file has no mapping.
#[derive(Debug)]
pub(super) struct MappedFile {
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps the whole file at `path`.
    pub(super) fn open(path: &Path) -> io::Result<MappedFile> {
        let file = File::open(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(MappedFile { map: None });
        }
        // SAFETY: nothing changes the file. Images are in a cache or a run directory, under their digests. Files there
        // are replaced by rename and never written in place. `Disk::open` requires its caller to ensure this.
        let map = unsafe { Mmap::map(&file)? };
        Ok(MappedFile { map: Some(map) })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&[])
    }
}

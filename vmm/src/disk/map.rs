//! A file mapped read-only. All `unsafe` of this folder.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// A mapped file. An empty file has no mapping.
#[derive(Debug)]
pub(super) struct MappedFile {
    map: Option<Mmap>,
}

impl MappedFile {
    /// Map a whole file.
    pub(super) fn open(path: &Path) -> io::Result<MappedFile> {
        let file = File::open(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(MappedFile { map: None });
        }
        // SAFETY: images are kept by digest in a cache or a run directory that nobody writes in place (they are
        // replaced by rename); `Disk::open` makes that its caller's promise.
        let map = unsafe { Mmap::map(&file)? };
        Ok(MappedFile { map: Some(map) })
    }

    /// Its content.
    pub(super) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&[])
    }
}

//! Read-only mappings of files. All `unsafe` code of this crate is here.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// A mapped file, with its open handle. An empty file has no mapping.
#[derive(Debug)]
pub(crate) struct MappedFile {
    file: Arc<File>,
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps a whole file. The caller promises that no program truncates or changes the file while it is mapped (see the
    /// parent module).
    pub(crate) fn open(path: &Path) -> io::Result<MappedFile> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let map = match metadata.len() {
            0 => None,
            // SAFETY: this crate writes files under another name, renames them, and never writes them in place.
            // Unlinking a mapped file leaves the mapping intact. The callers of `BaseFile::open` and `MomentFile::open`
            // promise that no other program changes or truncates the file.
            _ => Some(unsafe { Mmap::map(&file)? }),
        };
        Ok(MappedFile { file: Arc::new(file), map })
    }
    /// Creates an anonymous file in the host's memory (memfd), writes it, seals it, and maps it. After that, nothing
    /// can change or truncate the file.
    pub(crate) fn in_memory(write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<MappedFile> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("everett-base", flags)?);
        write(&file)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
        // SAFETY: this process created the file. The file is sealed, so its bytes and its length cannot change.
        let map = unsafe { Mmap::map(&file)? };
        Ok(MappedFile { file: Arc::new(file), map: Some(map) })
    }
    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&[])
    }
    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }
}

//! Guest RAM: one host mapping from guest-physical address 0. The engine, devices and loader share it.
//!
//! Devices and the loader write through [`Ram::memory`], which logs the written pages ([`PageLog`]). The machine tells
//! the engine about these pages before the engine runs again. The engine tracks its own writes. Only a restore replaces
//! pages without logging them ([`Ram::replace`]); the machine tells the engine about those pages separately.
//!
//! - `page_log`: log of the pages that were written through `vm-memory`
//! - `page_set`: set of page numbers that is cleared in time proportional to its content, not to the size of RAM
//! - `raw`: access to whole pages by pointer (`unsafe`)

mod page_log;
mod page_set;
mod raw;

pub use page_log::PageLog;
pub use page_set::PageSet;
pub(crate) use raw::whole;

use std::fs::File;
use std::sync::Arc;

use vm_memory::mmap::{MmapRegionBuilder, MmapRegionError};
use vm_memory::{Bytes as _, FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap};

use crate::layout::{PAGE, RAM_BYTES_MAX, RAM_BYTES_MIN};

/// Guest memory as a `vm-memory` type.
pub type Memory = GuestMemoryMmap<PageLog>;

/// Error of creating RAM.
#[derive(Debug, thiserror::Error)]
pub enum RamError {
    /// The size is out of bounds or not a multiple of the page size.
    #[error(
        "memory of {bytes} bytes: it must be a multiple of {PAGE} from {} MiB to {} MiB",
        RAM_BYTES_MIN >> 20,
        RAM_BYTES_MAX >> 20
    )]
    Size {
        /// Requested size in bytes.
        bytes: u64,
    },
    /// The file is too short, or the offset is not a multiple of the page size.
    #[error("{bytes} bytes of guest memory are not in the file at offset {offset}")]
    File {
        /// Requested size in bytes.
        bytes: u64,
        /// Offset in the file.
        offset: u64,
    },
    /// The host refused the mapping.
    #[error("the host cannot map {bytes} bytes of guest memory")]
    Map {
        /// Requested size in bytes.
        bytes: u64,
        /// The host's error.
        #[source]
        source: MmapRegionError,
    },
}

/// Guest RAM. Clones share the same memory.
#[derive(Debug, Clone)]
pub struct Ram {
    memory: Arc<Memory>,
    log: PageLog,
    bytes: u64,
}

impl Ram {
    /// Creates `bytes` of zeroed RAM.
    ///
    /// # Errors
    /// Returns an error if the size is outside the bounds of [`crate::layout`] or not whole pages, or if the host
    /// refuses the mapping.
    pub fn new(bytes: u64) -> Result<Ram, RamError> {
        Ram::map(bytes, None)
    }

    /// Maps `bytes` of a file from `offset` on as private RAM. The guest's writes never reach the file. Pages that the
    /// guest only reads stay in the host's page cache, which all mappings of the file share.
    ///
    /// # Errors
    /// Returns the errors of [`Ram::new`], and an error if the file is too short or `offset` is not a multiple of the
    /// page size.
    pub fn on_file(bytes: u64, file: Arc<File>, offset: u64) -> Result<Ram, RamError> {
        let long_enough = |file: &File| {
            let end = offset.checked_add(bytes)?;
            Some(offset.is_multiple_of(PAGE) && file.metadata().ok()?.len() >= end)
        };
        if long_enough(&file) != Some(true) {
            return Err(RamError::File { bytes, offset });
        }
        Ram::map(bytes, Some(FileOffset::from_arc(file, offset)))
    }

    fn map(bytes: u64, file: Option<FileOffset>) -> Result<Ram, RamError> {
        if !bytes.is_multiple_of(PAGE) || !(RAM_BYTES_MIN..=RAM_BYTES_MAX).contains(&bytes) {
            return Err(RamError::Size { bytes });
        }
        let log = PageLog::new(bytes);
        let map = |source| RamError::Map { bytes, source };
        let flags = if file.is_some() { PRIVATE } else { PRIVATE | ANONYMOUS };
        let mut builder = MmapRegionBuilder::new_with_bitmap(bytes as usize, log.clone())
            .with_mmap_prot(libc::PROT_READ | libc::PROT_WRITE)
            .with_mmap_flags(flags);
        if let Some(file) = file {
            builder = builder.with_file_offset(file);
        }
        let region = builder.build().map_err(map)?;
        let region = GuestRegionMmap::new(region, GuestAddress(0)).ok_or(RamError::Size { bytes })?;
        let memory = Memory::from_regions(vec![region]).map_err(|_| RamError::Size { bytes })?;
        Ok(Ram { memory: Arc::new(memory), log, bytes })
    }

    /// Returns the memory for checked reads and writes by guest-physical address.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
    /// Copies bytes from a guest-physical address. Returns false if a byte is outside of RAM.
    pub fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.memory.read_slice(into, GuestAddress(address)).is_ok()
    }

    /// Returns the size of RAM in bytes.
    pub fn len(&self) -> u64 {
        self.bytes
    }
    /// Returns false, because RAM has at least [`RAM_BYTES_MIN`] bytes.
    pub fn is_empty(&self) -> bool {
        false
    }
    /// Returns a reference to the memory for an engine, which thereby keeps the memory alive.
    pub fn shared(&self) -> Arc<Memory> {
        Arc::clone(&self.memory)
    }
    /// Takes the numbers of the pages that devices or the loader wrote since the last call, in ascending order.
    pub fn take_device_writes(&self) -> Vec<u64> {
        self.log.take()
    }
    /// True if devices or the loader wrote pages since the last [`Ram::take_device_writes`]. Costs one load.
    pub fn has_device_writes(&self) -> bool {
        self.log.any()
    }
}

/// Flags of a private mapping for which the host reserves no memory in advance.
const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_NORESERVE;
const ANONYMOUS: i32 = libc::MAP_ANONYMOUS;

#[cfg(test)]
mod tests {
    use super::*;
    use vm_memory::Bytes;

    #[test]
    fn sizes_outside_the_bounds_are_refused() {
        for bytes in [0, 4096, RAM_BYTES_MIN - 4096, RAM_BYTES_MIN + 1, RAM_BYTES_MAX + 4096] {
            assert!(matches!(Ram::new(bytes), Err(RamError::Size { .. })), "{bytes}");
        }
        assert!(Ram::new(RAM_BYTES_MIN).is_ok());
    }

    #[test]
    fn writes_are_noted_by_page() {
        let ram = Ram::new(RAM_BYTES_MIN).unwrap();
        ram.memory().write_slice(&[1; 10], GuestAddress(0x1ffb)).unwrap();
        ram.memory().write_obj(7u16, GuestAddress(0x8000)).unwrap();
        let mut buf = [0; 4];
        ram.memory().read_slice(&mut buf, GuestAddress(0x3000)).unwrap();
        assert!(ram.has_device_writes());
        assert_eq!(ram.take_device_writes(), [1, 2, 8]);
        assert!(!ram.has_device_writes());
        assert!(ram.memory().write_slice(&[0; 8], GuestAddress(RAM_BYTES_MIN - 4)).is_err());
    }

    #[test]
    fn a_file_is_mapped_privately() {
        use std::io::{Read, Seek, Write};
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(8192 + RAM_BYTES_MIN).unwrap();
        file.seek(std::io::SeekFrom::Start(8192 + 4096)).unwrap();
        file.write_all(&[7; 4096]).unwrap();
        let shared = Arc::new(file.try_clone().unwrap());
        let (a, b) = (
            Ram::on_file(RAM_BYTES_MIN, Arc::clone(&shared), 8192).unwrap(),
            Ram::on_file(RAM_BYTES_MIN, Arc::clone(&shared), 8192).unwrap(),
        );
        assert_eq!(a.page(1).unwrap(), &[7; 4096]);
        a.memory().write_slice(&[9; 4096], GuestAddress(4096)).unwrap();
        assert_eq!((a.page(1).unwrap(), b.page(1).unwrap()), (&[9; 4096], &[7; 4096]));
        file.seek(std::io::SeekFrom::Start(8192 + 4096)).unwrap();
        let mut byte = [0];
        file.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [7]);
        assert!(Ram::on_file(RAM_BYTES_MIN, shared, 16384).is_err(), "shorter than RAM");
    }
}

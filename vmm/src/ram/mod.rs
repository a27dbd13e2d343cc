//! Guest RAM: one host mapping from guest-physical address 0, shared by engine, devices and loader.
//!
//! Devices and loader write through [`Ram::memory`], which notes the pages ([`PageLog`]); the machine hands them to
//! the engine before it runs again. What the engine itself writes, it tracks itself.

mod page_log;

pub use page_log::PageLog;

use std::sync::Arc;

use vm_memory::mmap::{MmapRegionBuilder, MmapRegionError};
use vm_memory::{GuestAddress, GuestMemoryMmap, GuestRegionMmap};

use crate::layout::{PAGE, RAM_BYTES_MAX, RAM_BYTES_MIN};

/// Guest memory as `vm-memory` sees it.
pub type Memory = GuestMemoryMmap<PageLog>;

/// Why RAM could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RamError {
    /// The size is out of bounds or not whole pages.
    #[error(
        "memory of {bytes} bytes: it must be a multiple of {PAGE} from {} MiB to {} MiB",
        RAM_BYTES_MIN >> 20,
        RAM_BYTES_MAX >> 20
    )]
    Size {
        /// What was asked for.
        bytes: u64,
    },
    /// The host did not give it.
    #[error("the host cannot map {bytes} bytes of guest memory")]
    Map {
        /// What was asked for.
        bytes: u64,
        /// Why.
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
    /// Map `bytes` of zeroed RAM.
    ///
    /// # Errors
    /// When the size is outside the bounds of [`crate::layout`] or the host refuses.
    pub fn new(bytes: u64) -> Result<Ram, RamError> {
        if !bytes.is_multiple_of(PAGE) || !(RAM_BYTES_MIN..=RAM_BYTES_MAX).contains(&bytes) {
            return Err(RamError::Size { bytes });
        }
        let log = PageLog::new(bytes);
        let map = |source| RamError::Map { bytes, source };
        let region = MmapRegionBuilder::new_with_bitmap(bytes as usize, log.clone())
            .with_mmap_prot(libc_prot())
            .with_mmap_flags(libc_flags())
            .build()
            .map_err(map)?;
        let region = GuestRegionMmap::new(region, GuestAddress(0)).ok_or(RamError::Size { bytes })?;
        let memory = Memory::from_regions(vec![region]).map_err(|_| RamError::Size { bytes })?;
        Ok(Ram { memory: Arc::new(memory), log, bytes })
    }

    /// The memory for checked reads and writes by address.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
    /// Bytes of RAM.
    pub fn len(&self) -> u64 {
        self.bytes
    }
    /// Always false: there is at least [`RAM_BYTES_MIN`].
    pub fn is_empty(&self) -> bool {
        false
    }
    /// The same memory for an engine, which keeps it alive.
    pub fn shared(&self) -> Arc<Memory> {
        Arc::clone(&self.memory)
    }
    /// Pages that devices or the loader wrote since the last call, ascending.
    pub fn take_device_writes(&self) -> Vec<u64> {
        self.log.take()
    }
    /// Whether there are any, cheaply.
    pub fn has_device_writes(&self) -> bool {
        self.log.any()
    }
}

/// PROT_READ | PROT_WRITE.
fn libc_prot() -> i32 {
    0x1 | 0x2
}

/// MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE: untouched guest pages cost the host nothing.
fn libc_flags() -> i32 {
    0x02 | 0x20 | 0x4000
}

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
}

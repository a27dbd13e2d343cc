//! Guest RAM between guard pages, which are inaccessible, and canaries, whose bytes must not change.
//!
//! An access up to [`GUARD`] bytes outside RAM kills the process. A store that is up to [`CANARY`] bytes further away
//! changes a canary.
#![allow(unsafe_code)]

use crate::layout::RAM_LEN;

/// Size of the inaccessible area on each side of RAM, in bytes.
const GUARD: usize = 1 << 20;
/// Size of the writable area beyond each guard, in bytes.
const CANARY: usize = 1 << 14;
/// Value of all bytes in an unchanged canary.
const CANARY_BYTE: u8 = 0xc5;
/// Alignment of RAM in bytes. With it, the low bits of host addresses are the same in each process.
const ALIGNMENT: usize = 1 << 20;

/// A mapping with these parts in order: canary, guard, RAM, guard, canary.
pub(crate) struct Guarded {
    map: *mut u8,
    len: usize,
    ram: *mut u8,
}

impl Guarded {
    pub(crate) fn new() -> Guarded {
        let len = 2 * (CANARY + GUARD) + RAM_LEN + ALIGNMENT;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: this creates a new mapping at an address that the host chooses.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(map, libc::MAP_FAILED, "no memory");
        let map = map.cast::<u8>();
        let ram =
            map.wrapping_add((map as usize + CANARY + GUARD).next_multiple_of(ALIGNMENT) - map as usize);
        let guarded = Guarded { map, len, ram };
        for (at, len) in [(ram, RAM_LEN), (guarded.canaries()[0], CANARY), (guarded.canaries()[1], CANARY)] {
            // SAFETY: these are page-aligned parts of the mapping, which this object owns.
            let done = unsafe { libc::mprotect(at.cast(), len, libc::PROT_READ | libc::PROT_WRITE) };
            assert_eq!(done, 0, "no memory");
        }
        for canary in guarded.canaries() {
            // SAFETY: the area has just been made readable and writable, and there is no reference to it.
            unsafe { std::ptr::write_bytes(canary, CANARY_BYTE, CANARY) };
        }
        guarded
    }
    fn canaries(&self) -> [*mut u8; 2] {
        [self.ram.wrapping_sub(GUARD + CANARY), self.ram.wrapping_add(RAM_LEN + GUARD)]
    }
    /// Returns the host address of RAM.
    pub(crate) fn ram(&self) -> *mut u8 {
        self.ram
    }
    /// Returns the contents of RAM. Must not be called while a CPU runs.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: inside the mapping and initialised, and no CPU runs while this reference exists.
        unsafe { std::slice::from_raw_parts(self.ram, RAM_LEN) }
    }
    /// Writes to RAM. Must not be called while a CPU runs.
    pub(crate) fn write(&self, gpa: u64, bytes: &[u8]) {
        assert!(gpa as usize + bytes.len() <= RAM_LEN);
        // SAFETY: in bounds; no CPU runs, and no reference from `bytes()` is in use.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.ram.add(gpa as usize), bytes.len()) };
    }
    /// True if the canaries are unchanged.
    pub(crate) fn intact(&self) -> bool {
        self.canaries().iter().all(|&canary| {
            // SAFETY: inside the mapping and initialised. Only a defect writes to it.
            let bytes = unsafe { std::slice::from_raw_parts(canary, CANARY) };
            bytes == [CANARY_BYTE; CANARY]
        })
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: `new` made this mapping, and nothing uses it any more.
        unsafe { libc::munmap(self.map.cast(), self.len) };
    }
}

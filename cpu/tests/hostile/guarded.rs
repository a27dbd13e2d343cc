//! Guest RAM between guard pages and canary pages.
//!
//! An access up to [`GUARD`] bytes outside of RAM kills the process. A store slightly further away changes a canary.
#![allow(unsafe_code)]

use crate::layout::RAM_LEN;

/// Size of the inaccessible area on each side of RAM, in bytes.
const GUARD: usize = 1 << 20;
/// Size of a canary in bytes.
const CANARY: usize = 1 << 14;
/// Content of a canary.
const CANARY_BYTE: u8 = 0xc5;
/// Alignment of RAM in bytes, so that lookups by low bits of a host address give the same results in each process.
const ALIGNMENT: usize = 1 << 20;

/// A mapping of canary, guard, RAM, guard, canary.
pub(crate) struct Guarded {
    map: *mut u8,
    len: usize,
    ram: *mut u8,
}

impl Guarded {
    pub(crate) fn new() -> Guarded {
        let len = 2 * (CANARY + GUARD) + RAM_LEN + ALIGNMENT;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the host chooses.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(map, libc::MAP_FAILED, "no memory");
        let map = map.cast::<u8>();
        let ram =
            map.wrapping_add((map as usize + CANARY + GUARD).next_multiple_of(ALIGNMENT) - map as usize);
        let guarded = Guarded { map, len, ram };
        for (at, len) in [(ram, RAM_LEN), (guarded.canaries()[0], CANARY), (guarded.canaries()[1], CANARY)] {
            // SAFETY: page-aligned parts of the mapping, which this object owns.
            let done = unsafe { libc::mprotect(at.cast(), len, libc::PROT_READ | libc::PROT_WRITE) };
            assert_eq!(done, 0, "no memory");
        }
        for canary in guarded.canaries() {
            // SAFETY: the area has just been made readable and writable, and no reference to it exists.
            unsafe { std::ptr::write_bytes(canary, CANARY_BYTE, CANARY) };
        }
        guarded
    }
    fn canaries(&self) -> [*mut u8; 2] {
        [self.ram.wrapping_sub(GUARD + CANARY), self.ram.wrapping_add(RAM_LEN + GUARD)]
    }
    /// Returns the first byte of RAM.
    pub(crate) fn ram(&self) -> *mut u8 {
        self.ram
    }
    /// Returns RAM. May only be called while no CPU runs.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: inside the mapping and initialised, and no CPU runs while this reference exists.
        unsafe { std::slice::from_raw_parts(self.ram, RAM_LEN) }
    }
    /// Writes RAM. May only be called while no CPU runs.
    pub(crate) fn write(&self, gpa: u64, bytes: &[u8]) {
        assert!(gpa as usize + bytes.len() <= RAM_LEN);
        // SAFETY: in bounds; no CPU runs, and no reference from `bytes()` is in use.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.ram.add(gpa as usize), bytes.len()) };
    }
    /// True if the canaries are unchanged.
    pub(crate) fn intact(&self) -> bool {
        self.canaries().iter().all(|&canary| {
            // SAFETY: inside the mapping and initialised; only a defect writes it.
            let bytes = unsafe { std::slice::from_raw_parts(canary, CANARY) };
            bytes == [CANARY_BYTE; CANARY]
        })
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, which is no longer used.
        unsafe { libc::munmap(self.map.cast(), self.len) };
    }
}

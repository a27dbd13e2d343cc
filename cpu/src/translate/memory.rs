//! Memory that holds translated code.
//!
//! The memory is mapped writable or executable, never both. It is writable only while [`CodeMemory::publish`] copies
//! code into it. Remapping is expensive, so new code is collected before it is published. The memory is anonymous so
//! that the host can use large pages: code that is scattered over small pages causes misses in the host's TLB.
//!
//! **Invariant.** This crate emitted all bytes from the start up to `used`. Until [`CodeMemory::clear`], only the
//! targets of jumps in them and first instructions of translations change ([`CodeMemory::link`],
//! [`CodeMemory::redirect`]). Neither `clear` nor `publish` is called while translated
//! code runs.
#![allow(unsafe_code)]

use memmap2::{Advice, MmapMut};

/// Length of a direct jump in bytes. The first instruction of a translation has the same length.
pub(super) const REDIRECT_BYTES: usize = 5;

/// Memory for code that the host executes.
#[derive(Debug)]
pub(super) struct CodeMemory {
    map: MmapMut,
    /// Number of published bytes, which the host can execute.
    used: usize,
    /// Unpublished code. Publication places it after the published bytes.
    waiting: Vec<u8>,
    /// Offsets of jump displacements in published code, each with its new value.
    patches: Vec<(usize, [u8; 4])>,
    /// Offsets of translations in published code, each with the jump that replaces its first bytes.
    redirects: Vec<(usize, [u8; REDIRECT_BYTES])>,
}

impl CodeMemory {
    /// Reserves memory for `bytes` of code, a multiple of the page size. Returns `None` if the host does not permit
    /// executable memory.
    pub(super) fn new(bytes: usize) -> Option<CodeMemory> {
        debug_assert_eq!(bytes % 4096, 0);
        let map = MmapMut::map_anon(bytes).ok()?;
        // Failure is harmless: code without large pages is only slower.
        let _ = map.advise(Advice::HugePage);
        let mut memory =
            CodeMemory { map, used: 0, waiting: Vec::new(), patches: Vec::new(), redirects: Vec::new() };
        memory.protect(libc::PROT_READ | libc::PROT_EXEC).then_some(memory)
    }
    /// Returns the number of bytes that are free for code.
    pub(super) fn room(&self) -> usize {
        self.map.len() - self.used()
    }
    /// Returns the address of the first byte of code.
    pub(super) fn base(&self) -> u64 {
        self.map.as_ptr() as u64
    }
    /// Returns the address at which the next code will be placed.
    pub(super) fn next(&self) -> u64 {
        self.base() + self.used() as u64
    }
    /// Adds code at [`CodeMemory::next`] and returns its address. The caller ensures that there is room. The host can
    /// execute the code after the next publication.
    pub(super) fn put(&mut self, code: &[u8]) -> u64 {
        let at = self.next();
        self.waiting.extend_from_slice(code);
        // The next code begins at a multiple of 16 bytes, because the host fetches 16 aligned bytes at once.
        let end = self.used().next_multiple_of(16).min(self.map.len());
        self.waiting.resize(end - self.used, 0);
        at
    }
    /// Sets the target of the jump whose displacement is at `at`. Takes effect at the next publication.
    pub(super) fn link(&mut self, at: u64, to: u64) {
        let bytes = (to.wrapping_sub(at + 4) as i32).to_le_bytes();
        let at = (at - self.base()) as usize;
        match at.checked_sub(self.used) {
            Some(at) => self.waiting[at..at + bytes.len()].copy_from_slice(&bytes),
            None => self.patches.push((at, bytes)),
        }
    }
    /// Replaces the first instruction of the translation at `at` by a jump to the translation `to`. Takes effect at the
    /// next publication.
    pub(super) fn redirect(&mut self, at: u64, to: u64) {
        let distance = to.wrapping_sub(at + REDIRECT_BYTES as u64) as i32;
        let mut jump = [0xe9; REDIRECT_BYTES];
        jump[1..].copy_from_slice(&distance.to_le_bytes());
        let at = (at - self.base()) as usize;
        match at.checked_sub(self.used) {
            Some(at) => self.waiting[at..at + jump.len()].copy_from_slice(&jump),
            None => self.redirects.push((at, jump)),
        }
    }
    /// Makes all code executable.
    ///
    /// # Panics
    /// Panics if the host no longer permits changes of the mapping's protection.
    pub(super) fn publish(&mut self) {
        assert!(
            self.protect(libc::PROT_READ | libc::PROT_WRITE),
            "the host does not allow code to be written"
        );
        let end = self.used();
        self.map[self.used..end].copy_from_slice(&self.waiting);
        self.waiting.clear();
        self.used = end;
        for (at, bytes) in self.patches.drain(..) {
            self.map[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        for (at, jump) in self.redirects.drain(..) {
            self.map[at..at + jump.len()].copy_from_slice(&jump);
        }
        assert!(
            self.protect(libc::PROT_READ | libc::PROT_EXEC),
            "the host does not allow code to be executed"
        );
    }
    /// Drops all code except the first `keep` bytes.
    pub(super) fn clear(&mut self, keep: usize) {
        self.used = keep;
        self.waiting.clear();
        self.patches.clear();
        self.redirects.clear();
    }
    /// Returns the number of bytes of published and unpublished code.
    pub(super) fn used(&self) -> usize {
        self.used + self.waiting.len()
    }
    /// Changes the protection of the whole mapping. Returns true on success.
    fn protect(&mut self, protection: libc::c_int) -> bool {
        // SAFETY: the call covers exactly this mapping, which belongs to `self` alone. Only `publish` accesses the
        // mapping's bytes, and it makes them writable first. `self` is borrowed exclusively, so no reference to the
        // bytes exists.
        unsafe { libc::mprotect(self.map.as_mut_ptr().cast(), self.map.len(), protection) == 0 }
    }
}

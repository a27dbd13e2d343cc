//! Memory for translated code.
//!
//! It is either writable or executable, never both: it is made writable for as long as [`CodeMemory::publish`] copies.
//! Since that is expensive, code waits for more of its kind before. The memory is anonymous, so that the host can use large
//! pages for it: code that jumps about in small ones waits for the host's TLB.
//!
//! **Invariant.** What lies between the beginning and `used` was emitted by this crate. But for where jumps lead
//! ([`CodeMemory::link`]) it is never changed again before [`CodeMemory::clear`]. Nobody calls that or `publish` while code runs.
#![allow(unsafe_code)]

use memmap2::{Advice, MmapMut};

/// Code that the host can execute.
#[derive(Debug)]
pub(super) struct CodeMemory {
    map: MmapMut,
    /// What can be executed.
    used: usize,
    /// What belongs behind it.
    waiting: Vec<u8>,
    /// Displacements of jumps in what can be executed, and what they are to be.
    patches: Vec<(usize, [u8; 4])>,
}

impl CodeMemory {
    /// Room for so many bytes (a multiple of the page size), or none where the host does not allow it.
    pub(super) fn new(bytes: usize) -> Option<CodeMemory> {
        debug_assert_eq!(bytes % 4096, 0);
        let map = MmapMut::map_anon(bytes).ok()?;
        // A host without large pages is slower, and that is all.
        let _ = map.advise(Advice::HugePage);
        let mut memory = CodeMemory { map, used: 0, waiting: Vec::new(), patches: Vec::new() };
        memory.protect(libc::PROT_READ | libc::PROT_EXEC).then_some(memory)
    }
    /// How many more bytes of code there is room for.
    pub(super) fn room(&self) -> usize {
        self.map.len() - self.used()
    }
    /// Where the first code lies.
    pub(super) fn base(&self) -> u64 {
        self.map.as_ptr() as u64
    }
    /// Where the next code will lie.
    pub(super) fn next(&self) -> u64 {
        self.base() + self.used() as u64
    }
    /// Keep code at [`CodeMemory::next`]; there must be room. It cannot be executed before it is published.
    pub(super) fn put(&mut self, code: &[u8]) -> u64 {
        let at = self.next();
        self.waiting.extend_from_slice(code);
        // The next one begins at a line that the host fetches at once.
        let end = self.used().next_multiple_of(16).min(self.map.len());
        self.waiting.resize(end - self.used, 0);
        at
    }
    /// Let a jump whose displacement lies at an address lead to another one, from when all code is published.
    pub(super) fn link(&mut self, at: u64, to: u64) {
        let bytes = (to.wrapping_sub(at + 4) as i32).to_le_bytes();
        let at = (at - self.base()) as usize;
        match at.checked_sub(self.used) {
            Some(at) => self.waiting[at..at + bytes.len()].copy_from_slice(&bytes),
            None => self.patches.push((at, bytes)),
        }
    }
    /// Let all code be executed.
    ///
    /// # Panics
    /// If the host takes back what it has allowed before.
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
        assert!(
            self.protect(libc::PROT_READ | libc::PROT_EXEC),
            "the host does not allow code to be executed"
        );
    }
    /// Forget all but the first bytes of code.
    pub(super) fn clear(&mut self, keep: usize) {
        self.used = keep;
        self.waiting.clear();
        self.patches.clear();
    }
    /// How many bytes of code there are.
    pub(super) fn used(&self) -> usize {
        self.used + self.waiting.len()
    }
    /// Change what may be done with all of the code. Whether the host does so.
    fn protect(&mut self, protection: libc::c_int) -> bool {
        // SAFETY: all of this mapping, which is ours alone. Nothing reads or writes it but `publish`, which makes
        // it writable first; that it is `MmapMut` all the while gives no other access.
        unsafe { libc::mprotect(self.map.as_mut_ptr().cast(), self.map.len(), protection) == 0 }
    }
}

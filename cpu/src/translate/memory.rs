//! Memory for translated code, and right behind it for what that code reads and others write.
//!
//! The code is either writable or executable, never both: it is made writable for as long as [`CodeMemory::publish`] copies.
//! Since that is expensive, code waits for more of its kind before. It is anonymous memory, so that the host can use large
//! pages for it: code that jumps about in small ones waits for the host's TLB.
//!
//! **Invariant.** What lies between the beginning and `used` was emitted by this crate and is never changed again before
//! [`CodeMemory::clear`], which nobody calls while code runs.
#![allow(unsafe_code)]

use memmap2::{Advice, MmapMut};

/// Code that the host can execute, and words for it.
#[derive(Debug)]
pub(super) struct CodeMemory {
    map: MmapMut,
    code_bytes: usize,
    /// What can be executed.
    used: usize,
    /// What belongs behind it.
    waiting: Vec<u8>,
}

impl CodeMemory {
    /// Room for so many bytes of code (a multiple of the page size), or none where the host does not allow it. Words are zero.
    pub(super) fn new(code_bytes: usize, words: usize) -> Option<CodeMemory> {
        debug_assert_eq!(code_bytes % 4096, 0);
        let map = MmapMut::map_anon(code_bytes + 8 * words).ok()?;
        // A host without large pages is slower, and that is all.
        let _ = map.advise_range(Advice::HugePage, 0, code_bytes);
        let mut memory = CodeMemory { map, code_bytes, used: 0, waiting: Vec::new() };
        memory.protect(libc::PROT_READ | libc::PROT_EXEC).then_some(memory)
    }
    /// How many more bytes of code there is room for.
    pub(super) fn room(&self) -> usize {
        self.code_bytes - self.used()
    }
    /// Where the first code lies.
    pub(super) fn base(&self) -> u64 {
        self.map.as_ptr() as u64
    }
    /// Where the next code will lie.
    pub(super) fn next(&self) -> u64 {
        self.base() + self.used() as u64
    }
    /// Where a word lies.
    pub(super) fn address_of_word(&self, n: usize) -> u64 {
        self.base() + (self.code_bytes + 8 * n) as u64
    }
    /// The words.
    pub(super) fn words(&mut self) -> &mut [u64] {
        bytemuck::cast_slice_mut(&mut self.map[self.code_bytes..])
    }
    /// Keep code at [`CodeMemory::next`]; there must be room. It cannot be executed before it is published.
    pub(super) fn put(&mut self, code: &[u8]) -> u64 {
        let at = self.next();
        self.waiting.extend_from_slice(code);
        // The next one begins at a line that the host fetches at once.
        let end = self.used().next_multiple_of(16).min(self.code_bytes);
        self.waiting.resize(end - self.used, 0);
        at
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
        assert!(
            self.protect(libc::PROT_READ | libc::PROT_EXEC),
            "the host does not allow code to be executed"
        );
    }
    /// Forget all but the first bytes of code.
    pub(super) fn clear(&mut self, keep: usize) {
        self.used = keep;
        self.waiting.clear();
    }
    /// How many bytes of code there are.
    pub(super) fn used(&self) -> usize {
        self.used + self.waiting.len()
    }
    /// Change what may be done with all of the code. Whether the host does so.
    fn protect(&mut self, protection: libc::c_int) -> bool {
        // SAFETY: the beginning of this mapping, which is ours alone. Nothing reads or writes it but `publish`, which makes
        // it writable first; that it is `MmapMut` all the while gives no other access.
        unsafe { libc::mprotect(self.map.as_mut_ptr().cast(), self.code_bytes, protection) == 0 }
    }
}

//! Memory for translated code.
//!
//! It is either writable or executable, never both: it is made writable for as long as [`CodeMemory::put`] copies. It is
//! anonymous memory, so that the host can use large pages for it: code that jumps about in small ones waits for the host's
//! TLB.
//!
//! **Invariant.** What lies between the beginning and `used` was emitted by this crate and is never changed again before
//! [`CodeMemory::clear`], which nobody calls while code runs.
#![allow(unsafe_code)]

use memmap2::{Advice, MmapMut};

/// Code that the host can execute.
#[derive(Debug)]
pub(super) struct CodeMemory {
    map: MmapMut,
    used: usize,
}

impl CodeMemory {
    /// Room for so many bytes, or none where the host does not allow it.
    pub(super) fn new(bytes: usize) -> Option<CodeMemory> {
        let map = MmapMut::map_anon(bytes).ok()?;
        // A host without large pages is slower, and that is all.
        let _ = map.advise(Advice::HugePage);
        let mut memory = CodeMemory { map, used: 0 };
        memory.protect(libc::PROT_READ | libc::PROT_EXEC).then_some(memory)
    }
    /// How many more bytes there is room for.
    pub(super) fn room(&self) -> usize {
        self.map.len() - self.used
    }
    /// Keep code, and where it can be executed; there must be room.
    ///
    /// # Panics
    /// If the host takes back what it has allowed before.
    pub(super) fn put(&mut self, code: &[u8]) -> u64 {
        let start = self.used;
        assert!(
            self.protect(libc::PROT_READ | libc::PROT_WRITE),
            "the host does not allow code to be written"
        );
        self.map[start..start + code.len()].copy_from_slice(code);
        assert!(
            self.protect(libc::PROT_READ | libc::PROT_EXEC),
            "the host does not allow code to be executed"
        );
        // The next one begins at a line that the host fetches at once.
        self.used = (start + code.len()).next_multiple_of(16).min(self.map.len());
        self.map.as_ptr() as u64 + start as u64
    }
    /// Forget all but the first bytes.
    pub(super) fn clear(&mut self, keep: usize) {
        self.used = keep;
    }
    /// How many bytes are used.
    pub(super) fn used(&self) -> usize {
        self.used
    }
    /// Change what may be done with all of it. Whether the host does so.
    fn protect(&mut self, protection: libc::c_int) -> bool {
        // SAFETY: exactly this mapping, which is ours alone. Nothing reads or writes it but `put`, which makes it writable
        // first; that it is `MmapMut` all the while gives no other access.
        unsafe { libc::mprotect(self.map.as_mut_ptr().cast(), self.map.len(), protection) == 0 }
    }
}

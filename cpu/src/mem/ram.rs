//! Guest RAM as the CPU sees it: one host mapping from guest-physical address 0. All raw pointers live in this folder.
#![allow(unsafe_code)]

/// A fixed-width integer that can be loaded from and stored to guest memory.
pub(crate) trait Prim: Copy + Eq + 'static {
    /// Width in bytes.
    const SIZE: u64;
    /// Zero-extend.
    fn widen(self) -> u128;
    /// Truncate.
    fn narrow(v: u128) -> Self;
}

macro_rules! prim {
    ($($t:ty),*) => {$(
        impl Prim for $t {
            const SIZE: u64 = size_of::<$t>() as u64;
            #[inline(always)]
            fn widen(self) -> u128 {
                self as u128
            }
            #[inline(always)]
            fn narrow(v: u128) -> Self {
                v as $t
            }
        }
    )*};
}
prim!(u8, u16, u32, u64, u128);

/// A host mapping that holds guest RAM from guest-physical address 0 on.
#[derive(Debug, Clone, Copy)]
pub struct Ram {
    base: *mut u8,
    len: u64,
}

// SAFETY: a `Ram` is an address and a length; whoever made it promised (see `Ram::new`) that the mapping outlives it and
// that nobody else accesses it while a method runs, on whichever thread that is.
unsafe impl Send for Ram {}

impl Ram {
    /// Describe a mapping of `len` bytes at `base`.
    ///
    /// # Safety
    /// The mapping must stay valid, readable and writable for as long as the CPU that gets it, and while the CPU runs
    /// nothing else may access it.
    ///
    /// # Panics
    /// If `len` is not a multiple of the page size or `base` is not page-aligned.
    pub unsafe fn new(base: *mut u8, len: u64) -> Ram {
        assert!(len.is_multiple_of(4096) && (base as usize).is_multiple_of(4096));
        Ram { base, len }
    }
    /// Bytes of RAM.
    #[inline(always)]
    pub fn len(&self) -> u64 {
        self.len
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Whether `size` bytes at `gpa` are RAM.
    #[inline(always)]
    pub fn contains(&self, gpa: u64, size: u64) -> bool {
        gpa < self.len && size <= self.len - gpa
    }
    /// Host address of guest-physical 0, as a number to compute translations with.
    #[inline(always)]
    pub(crate) fn base_address(&self) -> u64 {
        self.base as u64
    }
    /// Load from RAM. Out of bounds is a bug of the caller.
    #[inline(always)]
    pub(crate) fn load<T: Prim>(&self, gpa: u64) -> T {
        assert!(self.contains(gpa, T::SIZE));
        // SAFETY: in bounds by the assertion; any bit pattern is a `T`; `Ram::new`'s promise excludes races.
        unsafe { self.base.add(gpa as usize).cast::<T>().read_unaligned() }
    }
    /// Store to RAM without any bookkeeping. Out of bounds is a bug of the caller.
    #[inline(always)]
    pub(super) fn store<T: Prim>(&self, gpa: u64, v: T) {
        assert!(self.contains(gpa, T::SIZE));
        // SAFETY: as in `load`.
        unsafe { self.base.add(gpa as usize).cast::<T>().write_unaligned(v) }
    }
    /// The bytes at `gpa`, as they are now.
    ///
    /// # Panics
    /// If they are not all RAM.
    pub fn slice(&self, gpa: u64, len: u64) -> &[u8] {
        assert!(self.contains(gpa, len));
        // SAFETY: in bounds; the borrow of `self` is short and the CPU that owns this `Ram` does not run meanwhile.
        unsafe { std::slice::from_raw_parts(self.base.add(gpa as usize), len as usize) }
    }
    /// Write RAM without any bookkeeping.
    ///
    /// # Panics
    /// If it is not all RAM.
    pub fn write(&mut self, gpa: u64, bytes: &[u8]) {
        assert!(self.contains(gpa, bytes.len() as u64) || bytes.is_empty());
        // SAFETY: in bounds, and `bytes` is nobody's RAM but maybe another mapping's; `Ram::new`'s promise excludes races.
        unsafe { std::ptr::copy(bytes.as_ptr(), self.base.add(gpa as usize), bytes.len()) }
    }
    /// Copy forward inside RAM, as memmove. Out of bounds is a bug of the caller.
    pub(super) fn copy(&self, dst: u64, src: u64, len: u64) {
        assert!(self.contains(dst, len) && self.contains(src, len));
        // SAFETY: both ranges in bounds; `copy` allows overlap.
        unsafe { std::ptr::copy(self.base.add(src as usize), self.base.add(dst as usize), len as usize) }
    }
    /// Fill with a byte. Out of bounds is a bug of the caller.
    pub(super) fn fill(&self, dst: u64, byte: u8, len: u64) {
        assert!(self.contains(dst, len));
        // SAFETY: in bounds.
        unsafe { std::ptr::write_bytes(self.base.add(dst as usize), byte, len as usize) }
    }
}

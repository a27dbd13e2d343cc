//! Guest RAM as the CPU sees it: one host mapping from guest-physical address 0. Only this folder has raw pointers to
//! the mapping.
#![allow(unsafe_code)]

/// A fixed-width integer that can be loaded from and stored to guest memory.
pub(crate) trait Prim: Copy + Eq + 'static {
    /// Width in bytes.
    const SIZE: u64;
    /// Zero-extends to 128 bits.
    fn widen(self) -> u128;
    /// Truncates from 128 bits.
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

/// A handle to a host mapping that holds guest RAM from guest-physical address 0 on.
///
/// Reads copy out of the mapping or compare in place, and no reference into the mapping outlives a call. A store
/// through a handle, or by translated code to a raw address, therefore never changes the target of a live reference.
///
/// Handles cannot be copied. [`Ram::another`] makes a second handle, and its caller promises that the two handles take
/// turns.
///
/// ```compile_fail,E0382
/// fn two_from_one(ram: everett_cpu::Ram) -> [everett_cpu::Ram; 2] {
///     [ram, ram]
/// }
/// ```
/// ```compile_fail,E0599
/// fn two_from_one(ram: everett_cpu::Ram) -> [everett_cpu::Ram; 2] {
///     [ram.clone(), ram]
/// }
/// ```
/// ```compile_fail,E0599
/// fn a_reference_into_guest_memory(ram: &everett_cpu::Ram) -> &[u8] {
///     ram.slice(0, 4096)
/// }
/// ```
#[derive(Debug)]
pub struct Ram {
    base: *mut u8,
    len: u64,
}

// SAFETY: a `Ram` is an address and a length. The caller of `Ram::new` promised that the mapping outlives the handle.
// The caller also promised, for all threads: nothing else writes to the mapping while a method of the handle or of its
// CPU runs, and nothing else accesses the mapping at all while such a method writes.
unsafe impl Send for Ram {}

impl Ram {
    /// Creates a handle to a mapping of `len` bytes at `base`.
    ///
    /// # Safety
    /// The mapping must stay valid, readable and writable as long as the handle and the CPU that gets it exist. While a
    /// method of the handle or the CPU runs, no other handle, device or thread may write to the mapping. While a
    /// method that writes runs ([`Ram::write`], [`Ram::copy_from`], any method of a CPU), nothing else may access the
    /// mapping at all.
    ///
    /// # Panics
    /// Panics if `len` is not a multiple of the page size or `base` is not page-aligned.
    pub unsafe fn new(base: *mut u8, len: u64) -> Ram {
        assert!(len.is_multiple_of(4096) && (base as usize).is_multiple_of(4096));
        Ram { base, len }
    }
    /// Returns another handle to the same RAM.
    ///
    /// # Safety
    /// The promises of [`Ram::new`] must hold: the mapping must outlive the new handle, too. The two handles and their
    /// CPUs must take turns.
    pub unsafe fn another(&self) -> Ram {
        Ram { base: self.base, len: self.len }
    }
    /// Returns the size of guest RAM in bytes.
    #[inline(always)]
    pub fn len(&self) -> u64 {
        self.len
    }
    /// True if the size is zero.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// True if all `size` bytes at `gpa` are RAM.
    #[inline(always)]
    pub fn contains(&self, gpa: u64, size: u64) -> bool {
        gpa < self.len && size <= self.len - gpa
    }
    /// Returns the host address of guest-physical address 0, as a number for address computations.
    #[inline(always)]
    pub(crate) fn base_address(&self) -> u64 {
        self.base as u64
    }
    /// Loads from RAM. Panics if the address is out of bounds, which is a bug of the caller.
    #[inline(always)]
    pub(crate) fn load<T: Prim>(&self, gpa: u64) -> T {
        assert!(self.contains(gpa, T::SIZE));
        // SAFETY: in bounds by the assertion; any bit pattern is a valid `T`; the promise of `Ram::new` excludes
        // races.
        unsafe { self.base.add(gpa as usize).cast::<T>().read_unaligned() }
    }
    /// Stores to RAM. The caller must also keep decoded code and the TLB consistent with the new bytes
    /// (`super::coherence`). Panics if the address is out of bounds, which is a bug of the caller.
    #[inline(always)]
    pub(super) fn store<T: Prim>(&self, gpa: u64, v: T) {
        assert!(self.contains(gpa, T::SIZE));
        // SAFETY: as in `load`.
        unsafe { self.base.add(gpa as usize).cast::<T>().write_unaligned(v) }
    }
    /// Copies the bytes at `gpa` into `buf`.
    ///
    /// # Panics
    /// Panics if the range is not all RAM.
    #[inline]
    pub fn read(&self, gpa: u64, buf: &mut [u8]) {
        if buf.is_empty() {
            return;
        }
        assert!(self.contains(gpa, buf.len() as u64));
        // SAFETY: in bounds. If `buf` overlaps the mapping, `copy` allows that. The promise of `Ram::new` excludes
        // races.
        unsafe { std::ptr::copy(self.base.add(gpa as usize), buf.as_mut_ptr(), buf.len()) }
    }
    /// Returns a copy of the page that contains `gpa`. Panics if `gpa` is out of bounds, which is a bug of the caller.
    #[inline]
    pub(crate) fn page(&self, gpa: u64) -> [u8; 4096] {
        let mut page = [0; 4096];
        self.read(gpa & !0xfff, &mut page);
        page
    }
    /// True if RAM holds `bytes` at `gpa`.
    ///
    /// # Panics
    /// Panics if the range is not all RAM.
    #[inline]
    pub fn holds(&self, gpa: u64, bytes: &[u8]) -> bool {
        // SAFETY: while the reference lives, only the comparison runs.
        unsafe { self.bytes(gpa, bytes.len() as u64) == bytes }
    }
    /// True if `len` bytes at `gpa` equal the `len` bytes at `others` in `other`, which may be a handle to the same
    /// RAM.
    ///
    /// # Panics
    /// Panics if either range is not all RAM.
    pub fn same(&self, gpa: u64, other: &Ram, others: u64, len: u64) -> bool {
        // SAFETY: as in `holds`.
        unsafe { self.bytes(gpa, len) == other.bytes(others, len) }
    }
    /// Returns a reference to guest RAM.
    ///
    /// # Safety
    /// While the reference lives, nothing may write to these bytes: no method of this or another handle, and no CPU.
    unsafe fn bytes(&self, gpa: u64, len: u64) -> &[u8] {
        if len == 0 {
            return &[];
        }
        assert!(self.contains(gpa, len));
        // SAFETY: in bounds. The caller's promise excludes writes, and the promise of `Ram::new` keeps the mapping
        // alive.
        unsafe { std::slice::from_raw_parts(self.base.add(gpa as usize), len as usize) }
    }
    /// Writes to RAM. A CPU on this RAM may have decoded code from these bytes or use them as page tables, so the
    /// caller must tell the CPU about the write ([`Cpu::memory_written`](crate::Cpu::memory_written)).
    ///
    /// # Panics
    /// Panics if the range is not all RAM.
    pub fn write(&mut self, gpa: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        assert!(self.contains(gpa, bytes.len() as u64));
        // SAFETY: in bounds. If `bytes` overlaps the mapping, `copy` allows that. The promise of `Ram::new` excludes
        // races.
        unsafe { std::ptr::copy(bytes.as_ptr(), self.base.add(gpa as usize), bytes.len()) }
    }
    /// Copies `len` bytes at `gpa` from `other` to the same address here. `other` may be a handle to the same RAM. As
    /// for [`Ram::write`], the caller must tell a CPU on this RAM about the write.
    ///
    /// # Panics
    /// Panics if the range is not all RAM in both handles.
    pub fn copy_from(&mut self, gpa: u64, other: &Ram, len: u64) {
        if len == 0 {
            return;
        }
        assert!(self.contains(gpa, len) && other.contains(gpa, len));
        // SAFETY: the range is in bounds of both, and `copy` allows overlap. The promise of `Ram::new` excludes races.
        unsafe { std::ptr::copy(other.base.add(gpa as usize), self.base.add(gpa as usize), len as usize) }
    }
    /// Copies within RAM, as memmove does. Panics if a range is out of bounds, which is a bug of the caller.
    pub(super) fn copy(&self, dst: u64, src: u64, len: u64) {
        assert!(self.contains(dst, len) && self.contains(src, len));
        // SAFETY: both ranges are in bounds, and `copy` allows overlap.
        unsafe { std::ptr::copy(self.base.add(src as usize), self.base.add(dst as usize), len as usize) }
    }
    /// Fills a range with a byte. Panics if the range is out of bounds, which is a bug of the caller.
    pub(super) fn fill(&self, dst: u64, byte: u8, len: u64) {
        assert!(self.contains(dst, len));
        // SAFETY: in bounds.
        unsafe { std::ptr::write_bytes(self.base.add(dst as usize), byte, len as usize) }
    }
}

//! Zero-initialised tables whose untouched parts use no host memory. They keep the cost of a new CPU independent of the
//! size of its guest's RAM. A zeroed `Vec` would not: when its allocator reuses memory, it clears all of the memory.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use bytemuck::Zeroable;
use memmap2::{Advice, MmapMut};

/// Minimum size of a table that asks the host for large pages. Accesses are at random addresses, where a miss in the
/// host's TLB costs more than a miss in its cache.
const LARGE_BYTES: usize = 2 << 20;

/// A table of fixed length in its own anonymous mapping. Entries are never dropped; `T` has no drop glue.
#[derive(Debug)]
pub(crate) struct Zeroed<T> {
    map: MmapMut,
    len: usize,
    entries: PhantomData<T>,
}

impl<T: Zeroable + Copy> Zeroed<T> {
    /// Creates a table of `len` zero entries. If the host has no memory for it, the process ends, as with any
    /// allocation.
    pub(crate) fn new(len: usize) -> Zeroed<T> {
        // A mapping begins at a page boundary, so `T` must not need a larger alignment. A mapping must not be empty, so
        // `T` must not have size 0.
        const { assert!(align_of::<T>() <= 4096 && size_of::<T>() > 0) };
        let layout = std::alloc::Layout::array::<T>(len.max(1)).unwrap_or_else(|_| too_long(len));
        let map = MmapMut::map_anon(layout.size()).unwrap_or_else(|_| std::alloc::handle_alloc_error(layout));
        if layout.size() >= LARGE_BYTES {
            // Failure is harmless: a table without large pages is only slower.
            let _ = map.advise(Advice::HugePage);
        }
        Zeroed { map, len, entries: PhantomData }
    }
}

#[cold]
fn too_long(len: usize) -> ! {
    panic!("a table of {len} entries is beyond the address space")
}

impl<T: Zeroable + Copy> Deref for Zeroed<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping is aligned for `T` and has room for `len` entries (`new`). All entries are initialised:
        // zero is a valid `T` (`Zeroable`), and any other content was written as a `T`. The mapping lives as long as
        // `self`, which is borrowed.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.len) }
    }
}

impl<T: Zeroable + Copy> DerefMut for Zeroed<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; in addition, `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_as_zeroes_and_keeps_what_is_written() {
        let mut table = Zeroed::<u64>::new(3000);
        assert!(table.len() == 3000 && table.iter().all(|&entry| entry == 0));
        table[2999] = 7;
        table[..1000].fill(9);
        assert_eq!((table[0], table[999], table[1000], table[2999]), (9, 9, 0, 7));
        assert!(Zeroed::<u8>::new(0).is_empty());
    }
}

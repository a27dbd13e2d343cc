//! The software TLB: from a guest page to the host address of its bytes.
//!
//! An entry has a tag for each kind of access, so that permissions are checked by the same comparison that finds the
//! page. There is a table for each [`Mode`]; which one applies changes with CPL and RFLAGS.AC only.
//!
//! **Invariant.** An entry exists only while the paging entries it came from are unchanged (`super::coherence` sees to
//! it). A write tag exists only for pages that carry neither a code nor a page-table mark and are already marked dirty.
#![allow(unsafe_code)]

use super::Access;
use super::ram::Prim;

pub(crate) const PAGE_MASK: u64 = !0xfff;
/// A tag that no address gives: tags of addresses have twelve zero bits.
const NONE: u64 = 1;

/// Whose rules apply to an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// CPL 0-2, user pages forbidden when SMAP is on.
    Kernel = 0,
    /// CPL 0-2 with RFLAGS.AC set: SMAP suspended.
    KernelAc = 1,
    /// CPL 3.
    User = 2,
    /// CPL 3 with alignment checks: never cached, so that each access is looked at.
    UserAligned = 3,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Entry {
    read: u64,
    write: u64,
    exec: u64,
    /// Host address minus guest address.
    addend: u64,
}

/// Where translated code finds the parts of an entry, and the binary logarithm of its bytes.
pub(crate) const READ: usize = std::mem::offset_of!(Entry, read);
pub(crate) const WRITE: usize = std::mem::offset_of!(Entry, write);
pub(crate) const EXEC: usize = std::mem::offset_of!(Entry, exec);
pub(crate) const ADDEND: usize = std::mem::offset_of!(Entry, addend);
pub(crate) const ENTRY_SHIFT: u8 = 5;
const _: () = assert!(size_of::<Entry>() == 1 << ENTRY_SHIFT);

const EMPTY: Entry = Entry { read: NONE, write: NONE, exec: NONE, addend: 0 };

/// A table is flushed in so many parts: one that was hardly used is not worth its length.
const PARTS: u32 = u64::BITS;

/// What a fill allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allow {
    pub read: bool,
    pub write: bool,
    pub exec: bool,
}

#[derive(Debug)]
pub(crate) struct Tlb {
    entries: Vec<Entry>,
    /// The address of the current mode's first entry, for translated code.
    pub(crate) table: u64,
    /// Entries a mode, minus one; a power of two minus one.
    mask: usize,
    /// Index of the current mode's first entry.
    base: usize,
    mode: Mode,
    /// Every access misses: the table of `Mode::UserAligned` stands in for all, and it is never filled.
    bypass: bool,
    /// By mode, which 64ths of the table may hold anything since they were flushed.
    used: [u64; 4],
    /// The binary logarithm of entries in a 64th.
    part_shift: u32,
    /// The kernel's table may hold addresses below the middle, or would if anything was cached.
    kernel_below: bool,
    /// By mode, a number that changes when what was known of where code lies may not hold any more. No two modes have the same.
    epochs: [u64; 4],
    /// The last one that was given.
    last_epoch: u64,
    /// The current mode's, for translated code: as long as it is the same, the code at an address that was executed is
    /// there and may be executed.
    pub(crate) epoch: u64,
}

impl Tlb {
    /// `entries` a mode: a power of two, and at least two. With a single one an access that leaves its page would find the
    /// tag of its last byte in the entry of its first.
    pub(crate) fn new(entries: usize) -> Tlb {
        assert!(entries.is_power_of_two() && entries > 1);
        let mut tlb = Tlb {
            entries: vec![EMPTY; entries * 4],
            table: 0,
            mask: entries - 1,
            base: 0,
            mode: Mode::Kernel,
            bypass: false,
            used: [0; 4],
            part_shift: entries.trailing_zeros().saturating_sub(PARTS.trailing_zeros()),
            kernel_below: false,
            epochs: [0; 4],
            last_epoch: 0,
            epoch: 0,
        };
        tlb.code_moves(true);
        tlb.set_mode(Mode::Kernel);
        tlb
    }
    /// Entries a mode, minus one.
    pub(crate) fn mask(&self) -> usize {
        self.mask
    }
    #[inline(always)]
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }
    #[inline(always)]
    pub(crate) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        let table = if self.bypass { Mode::UserAligned } else { mode };
        self.base = (table as usize) * (self.mask + 1);
        self.table = &raw const self.entries[self.base] as u64;
        // Of the mode itself: it says who may execute what.
        self.epoch = self.epochs[mode as usize];
    }
    /// Code may lie elsewhere from here on, in all modes or in all but the kernel's.
    fn code_moves(&mut self, kernel: bool) {
        for mode in (0..4).filter(|&mode| kernel || mode != Mode::Kernel as usize) {
            self.last_epoch += 1;
            self.epochs[mode] = self.last_epoch;
        }
        self.set_mode(self.mode);
    }
    /// Some page does not hold the code any more that it held.
    pub(crate) fn code_changes(&mut self) {
        self.code_moves(true);
    }
    /// Let every access miss, or not.
    pub(crate) fn bypass(&mut self, on: bool) {
        self.bypass = on;
        self.set_mode(self.mode);
    }
    /// Whether every access misses.
    #[inline(always)]
    pub(crate) fn bypassed(&self) -> bool {
        self.bypass
    }
    #[inline(always)]
    fn index(&self, va: u64) -> usize {
        self.base + ((va >> 12) as usize & self.mask)
    }
    #[inline(always)]
    fn entry(&self, va: u64) -> &Entry {
        debug_assert!(self.index(va) < self.entries.len());
        // SAFETY: `base` is mode * (mask + 1) with mode < 4, the rest is at most `mask`, and there are 4 * (mask + 1).
        unsafe { self.entries.get_unchecked(self.index(va)) }
    }
    /// A hit for all of `T` within one page, or nothing.
    #[inline(always)]
    pub(crate) fn load<T: Prim>(&self, va: u64) -> Option<T> {
        let e = self.entry(va);
        if e.read == va.wrapping_add(T::SIZE - 1) & PAGE_MASK {
            let p = va.wrapping_add(e.addend) as *const T;
            // SAFETY: the tag matches for the first and the last byte, so both lie in the page whose host address the
            // entry holds; entries are filled from `Ram` only.
            return Some(unsafe { p.read_unaligned() });
        }
        None
    }
    /// Whether the store hit and was done.
    #[inline(always)]
    pub(crate) fn store<T: Prim>(&self, va: u64, v: T) -> bool {
        let e = self.entry(va);
        if e.write == va.wrapping_add(T::SIZE - 1) & PAGE_MASK {
            let p = va.wrapping_add(e.addend) as *mut T;
            // SAFETY: as in `load`.
            unsafe { p.write_unaligned(v) };
            return true;
        }
        false
    }
    /// Read, modify, write in one page that may be written; the function back on a miss.
    #[inline(always)]
    pub(crate) fn update<T: Prim, R, F: FnOnce(T) -> (T, R)>(&self, va: u64, f: F) -> Result<R, F> {
        let e = self.entry(va);
        if e.write == va.wrapping_add(T::SIZE - 1) & PAGE_MASK {
            let p = va.wrapping_add(e.addend) as *mut T;
            // SAFETY: as in `load`; pages that may be written may be read.
            let (v, r) = f(unsafe { p.read_unaligned() });
            // SAFETY: as in `load`.
            unsafe { p.write_unaligned(v) };
            return Ok(r);
        }
        Err(f)
    }
    /// The host address of the page at `va` if it may be executed.
    #[inline(always)]
    pub(crate) fn exec_host(&self, va: u64) -> Option<u64> {
        let e = self.entry(va);
        if e.exec == va & PAGE_MASK { Some(va.wrapping_add(e.addend)) } else { None }
    }
    /// The host address of `va` if it may be accessed in this way without notice.
    pub(crate) fn host(&self, va: u64, access: Access) -> Option<u64> {
        match access {
            Access::Read => self.read_host(va),
            Access::Write => self.write_host(va),
            Access::Exec => self.exec_host(va),
        }
    }
    /// The host address of `va` if it may be read.
    #[inline(always)]
    pub(crate) fn read_host(&self, va: u64) -> Option<u64> {
        let e = self.entry(va);
        if e.read == va & PAGE_MASK { Some(va.wrapping_add(e.addend)) } else { None }
    }
    /// The host address of `va` if it may be written without notice.
    #[inline(always)]
    pub(crate) fn write_host(&self, va: u64) -> Option<u64> {
        let e = self.entry(va);
        if e.write == va & PAGE_MASK { Some(va.wrapping_add(e.addend)) } else { None }
    }
    /// Enter a translation for the current mode, if that is cached at all. `host` is the host address of the page.
    pub(crate) fn fill(&mut self, va: u64, host: u64, allow: Allow) {
        self.kernel_below |= self.mode == Mode::Kernel && (va as i64) >= 0;
        if self.bypass || self.mode == Mode::UserAligned {
            return;
        }
        let page = va & PAGE_MASK;
        let tag = |on: bool| if on { page } else { NONE };
        let i = self.index(va);
        self.used[self.mode as usize] |= 1 << ((i - self.base) >> self.part_shift);
        self.entries[i] = Entry {
            read: tag(allow.read),
            write: tag(allow.write),
            exec: tag(allow.exec),
            addend: host.wrapping_sub(page),
        };
    }
    /// Drop whatever is cached for one page, in all modes.
    pub(crate) fn drop_page(&mut self, va: u64) {
        self.code_moves(self.kernel_below || (va as i64) < 0);
        let page = va & PAGE_MASK;
        let slot = (va >> 12) as usize & self.mask;
        for mode in 0..4 {
            let e = &mut self.entries[mode * (self.mask + 1) + slot];
            if e.read == page || e.write == page || e.exec == page {
                *e = EMPTY;
            }
        }
    }
    /// Drop the write tags of every entry that maps this host page.
    pub(crate) fn drop_writes_to(&mut self, host: u64) {
        self.for_each_used(|e| {
            if e.write != NONE && e.write.wrapping_add(e.addend) == host {
                e.write = NONE;
            }
        });
    }
    /// Drop all write tags.
    pub(crate) fn drop_writes(&mut self) {
        self.for_each_used(|e| e.write = NONE);
    }
    fn for_each_used(&mut self, mut each: impl FnMut(&mut Entry)) {
        for (mode, entries) in self.entries.chunks_mut(self.mask + 1).enumerate() {
            for (n, part) in entries.chunks_mut(1 << self.part_shift).enumerate() {
                if self.used[mode] & 1 << n != 0 {
                    part.iter_mut().for_each(&mut each);
                }
            }
        }
    }
    /// Drop everything.
    pub(crate) fn flush(&mut self) {
        self.code_moves(true);
        self.clear();
    }
    fn clear(&mut self) {
        self.for_each_used(|e| *e = EMPTY);
        (self.used, self.kernel_below) = ([0; 4], false);
    }
    /// Drop everything, except for what the kernel alone sees above the middle of the address space.
    pub(crate) fn flush_below(&mut self) {
        self.code_moves(self.kernel_below);
        let kept = if self.kernel_below { 0 } else { std::mem::take(&mut self.used[Mode::Kernel as usize]) };
        self.clear();
        self.used[Mode::Kernel as usize] = kept;
    }
}

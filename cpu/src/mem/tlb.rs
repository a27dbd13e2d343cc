//! The software TLB: a cache that maps a page of guest-virtual memory to the host address of its bytes.
//!
//! An entry has one tag (the page's address) for each permitted kind of access, so the comparison that finds the page
//! also checks its permissions. Each [`Mode`] has its own table. CPL, RFLAGS.AC and CR0.AM determine the current mode.
//!
//! **Invariant.** An entry exists only while the paging entries from which it was derived are unchanged;
//! `super::coherence` ensures this. A page has write tags only if `super::coherence` has marked it as written (dirty),
//! and has marked it neither as decoded code nor as a page table.
#![allow(unsafe_code)]

use super::Access;
use super::ram::Prim;

pub(crate) const PAGE_MASK: u64 = !0xfff;
/// Tag that matches no address. The low twelve bits of every page address are zero.
const NONE: u64 = 1;

/// Access rules, which depend on CPL, RFLAGS.AC and CR0.AM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// CPL 0-2. If SMAP is on, data accesses to user pages fault.
    Kernel = 0,
    /// CPL 0-2 with RFLAGS.AC set, which suspends SMAP.
    KernelAc = 1,
    /// CPL 3.
    User = 2,
    /// CPL 3 with alignment checks. The TLB holds no entries for this mode, so every access takes the slow path.
    UserAligned = 3,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Entry {
    read: u64,
    write: u64,
    exec: u64,
    /// Host address of the page minus its guest-virtual address.
    addend: u64,
}

/// Offsets of an entry's fields, and the binary logarithm of its size in bytes. Translated code uses these.
pub(crate) const READ: usize = std::mem::offset_of!(Entry, read);
pub(crate) const WRITE: usize = std::mem::offset_of!(Entry, write);
pub(crate) const EXEC: usize = std::mem::offset_of!(Entry, exec);
pub(crate) const ADDEND: usize = std::mem::offset_of!(Entry, addend);
pub(crate) const ENTRY_SHIFT: u8 = 5;
const _: () = assert!(size_of::<Entry>() == 1 << ENTRY_SHIFT);

const EMPTY: Entry = Entry { read: NONE, write: NONE, exec: NONE, addend: 0 };

/// Number of parts of a table. A flush skips the parts that hold no entries.
const PARTS: u32 = u64::BITS;

/// Kinds of access that a new entry permits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allow {
    pub read: bool,
    pub write: bool,
    pub exec: bool,
}

#[derive(Debug)]
pub(crate) struct Tlb {
    entries: Vec<Entry>,
    /// Host address of the current mode's first entry. Translated code reads it.
    pub(crate) table: u64,
    /// Number of entries per mode, minus one. The number is a power of two.
    mask: usize,
    /// Index of the current mode's first entry.
    base: usize,
    mode: Mode,
    /// True if every access must miss. All modes then use the table of `Mode::UserAligned`, which stays empty.
    bypass: bool,
    /// For each mode, one bit for each of the 64 parts of its table: set if the part may hold entries.
    used: [u64; 4],
    /// Binary logarithm of the number of entries in a part.
    part_shift: u32,
    /// True if the table of `Mode::Kernel` may hold addresses in the lower half of the address space. Also set by fills
    /// that `bypass` suppresses: code at the address may have run, and this field decides whether `Mode::Kernel` needs a new
    /// epoch (see `epoch`).
    kernel_below: bool,
    /// Current epoch of each mode (see `epoch`). No two modes have the same epoch.
    epochs: [u64; 4],
    /// Highest epoch number issued so far.
    last_epoch: u64,
    /// Epoch of the current mode. Translated code compares it with the epochs in the tables of recent calls, jumps and
    /// pages (`core::native`). While the epoch lasts, the code that was executed at an address is still at that address
    /// and still executable.
    pub(crate) epoch: u64,
}

impl Tlb {
    /// Creates a TLB with `entries` per mode: a power of two, at least two. The lookup takes the entry for the first
    /// byte's page and compares its tag with the last byte's page. With at least two entries, neighbouring pages have
    /// different entries, so an access across two pages never matches.
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
    /// Returns the number of entries per mode, minus one.
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
        // The epoch follows the mode even with `bypass`, because the mode determines which pages are executable.
        self.epoch = self.epochs[mode as usize];
    }
    /// Begins new epochs, because a linear address may now lead to other code. `Mode::Kernel` gets a new epoch only if
    /// `kernel` is set.
    fn code_moves(&mut self, kernel: bool) {
        for mode in (0..4).filter(|&mode| kernel || mode != Mode::Kernel as usize) {
            self.last_epoch += 1;
            self.epochs[mode] = self.last_epoch;
        }
        self.set_mode(self.mode);
    }
    /// Begins new epochs for all modes, because the contents of a page of code have changed.
    pub(crate) fn code_changes(&mut self) {
        self.code_moves(true);
    }
    /// Makes every access miss while `on` is true.
    pub(crate) fn bypass(&mut self, on: bool) {
        self.bypass = on;
        self.set_mode(self.mode);
    }
    /// True if every access misses.
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
        // SAFETY: `base` is mode * (mask + 1) with mode < 4, and the masked page number is at most `mask`. Each of the
        // 4 tables has mask + 1 entries.
        unsafe { self.entries.get_unchecked(self.index(va)) }
    }
    /// Loads a `T`. Returns `None` unless the `T` lies within one page of which the TLB permits reads.
    #[inline(always)]
    pub(crate) fn load<T: Prim>(&self, va: u64) -> Option<T> {
        let e = self.entry(va);
        if e.read == va.wrapping_add(T::SIZE - 1) & PAGE_MASK {
            let p = va.wrapping_add(e.addend) as *const T;
            // SAFETY: the tag matches the pages of the first and the last byte, so both lie in the page whose host
            // address the entry gives. Entries are filled from `Ram` only.
            return Some(unsafe { p.read_unaligned() });
        }
        None
    }
    /// Stores a `T`. Returns false unless the `T` lies within one page to which the TLB permits writes.
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
    /// Reads, modifies and writes a `T`. Returns `Err(f)` unless the `T` lies within one page to which the TLB permits
    /// writes.
    #[inline(always)]
    pub(crate) fn update<T: Prim, R, F: FnOnce(T) -> (T, R)>(&self, va: u64, f: F) -> Result<R, F> {
        let e = self.entry(va);
        if e.write == va.wrapping_add(T::SIZE - 1) & PAGE_MASK {
            let p = va.wrapping_add(e.addend) as *mut T;
            // SAFETY: as in `load`; writable pages are readable.
            let (v, r) = f(unsafe { p.read_unaligned() });
            // SAFETY: as in `load`.
            unsafe { p.write_unaligned(v) };
            return Ok(r);
        }
        Err(f)
    }
    /// Returns the host address of `va` if the TLB permits execution of the page.
    #[inline(always)]
    pub(crate) fn exec_host(&self, va: u64) -> Option<u64> {
        let e = self.entry(va);
        if e.exec == va & PAGE_MASK { Some(va.wrapping_add(e.addend)) } else { None }
    }
    /// Returns the host address of `va` if the TLB permits this access.
    pub(crate) fn host(&self, va: u64, access: Access) -> Option<u64> {
        match access {
            Access::Read => self.read_host(va),
            Access::Write => self.write_host(va),
            Access::Exec => self.exec_host(va),
        }
    }
    /// Returns the host address of `va` if the TLB permits reads of the page.
    #[inline(always)]
    pub(crate) fn read_host(&self, va: u64) -> Option<u64> {
        let e = self.entry(va);
        if e.read == va & PAGE_MASK { Some(va.wrapping_add(e.addend)) } else { None }
    }
    /// Returns the host address of `va` if the TLB permits writes to the page.
    #[inline(always)]
    pub(crate) fn write_host(&self, va: u64) -> Option<u64> {
        let e = self.entry(va);
        if e.write == va & PAGE_MASK { Some(va.wrapping_add(e.addend)) } else { None }
    }
    /// Fills the current mode's entry for the page of `va`. `host` is the host address of the page. In
    /// `Mode::UserAligned` and with `bypass`, no entry is filled.
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
    /// Drops the entries for one page in all modes.
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
    /// Drops the write tags of all entries that map the page at this host address.
    pub(crate) fn drop_writes_to(&mut self, host: u64) {
        self.for_each_used(|e| {
            if e.write != NONE && e.write.wrapping_add(e.addend) == host {
                e.write = NONE;
            }
        });
    }
    /// Drops all write tags.
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
    /// Drops all entries.
    pub(crate) fn flush(&mut self) {
        self.code_moves(true);
        self.clear();
    }
    fn clear(&mut self) {
        self.for_each_used(|e| *e = EMPTY);
        (self.used, self.kernel_below) = ([0; 4], false);
    }
    /// Drops all entries except those of `Mode::Kernel` for the upper half of the address space. If that mode may also
    /// have entries for the lower half, drops all entries.
    pub(crate) fn flush_below(&mut self) {
        self.code_moves(self.kernel_below);
        let kept = if self.kernel_below { 0 } else { std::mem::take(&mut self.used[Mode::Kernel as usize]) };
        self.clear();
        self.used[Mode::Kernel as usize] = kept;
    }
}

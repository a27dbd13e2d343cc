//! The software TLB: a cache that maps a page of guest-virtual memory to the host address of its bytes.
//!
//! An entry has one tag (the page's address) for each permitted kind of access, so the comparison that finds the page
//! also checks its permissions. CPL, RFLAGS.AC and CR0.AM determine the current [`Mode`]. `Mode::Kernel` has a table of
//! its own, and the other modes have tables for each of the last address spaces (`super::spaces`), so that a process that
//! runs again finds its entries.
//!
//! Each table has two *ways*. Lookups only ask the first. A new entry moves the old one of its slot to the second way, and
//! an access that misses the first way but finds its page in the second exchanges the two. Without the second way, two
//! busy pages at a distance of a table's size would miss alternately: a run of CPython that had such pages took twice as
//! long.
//!
//! **Invariant.** An entry exists only while the paging entries from which it was derived are unchanged;
//! `super::coherence` ensures this. A page has write tags only if `super::coherence` has marked it as written (dirty),
//! and has marked it neither as decoded code nor as a page table.
#![allow(unsafe_code)]

use super::Access;
use super::ram::Prim;

pub(crate) const PAGE_MASK: u64 = !0xfff;
/// Tag that matches no address. A lookup compares tags with an address whose bit 11 is cleared: it clears the low twelve
/// bits, or, if the access must be aligned, all of these but the bits that show a misaligned address.
const NONE: u64 = 1 << 11;

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

impl Entry {
    /// True if the entry permits an access to the page.
    fn is_of(&self, page: u64) -> bool {
        self.read == page || self.write == page || self.exec == page
    }
    /// True if the entry permits no access.
    fn is_empty(&self) -> bool {
        [self.read, self.write, self.exec] == [NONE; 3]
    }
}

/// Offsets of an entry's fields, and the binary logarithm of its size in bytes. Translated code uses these.
pub(crate) const READ: usize = std::mem::offset_of!(Entry, read);
pub(crate) const WRITE: usize = std::mem::offset_of!(Entry, write);
pub(crate) const EXEC: usize = std::mem::offset_of!(Entry, exec);
pub(crate) const ADDEND: usize = std::mem::offset_of!(Entry, addend);
pub(crate) const ENTRY_SHIFT: u8 = 5;
const _: () = assert!(size_of::<Entry>() == 1 << ENTRY_SHIFT);

/// Maximum number of address spaces whose entries are kept.
pub(crate) const SPACES: usize = 8;

/// Set of owners of TLB entries: bit 0 for the entries of `Mode::Kernel`, and a bit for each address space, whose entries
/// are those of the other modes.
pub(crate) type Owners = u16;
pub(crate) const KERNEL: Owners = 1;
const _: () = assert!(SPACES < Owners::BITS as usize);

/// Returns the owner of an address space's entries.
pub(crate) fn owner_of(space: usize) -> Owners {
    2 << space
}

/// Numbers of tables: that of `Mode::Kernel`, one that stays empty, and then two for each address space.
const KERNEL_TABLE: usize = 0;
const EMPTY_TABLE: usize = 1;

/// Returns the number of an address space's table of `Mode::KernelAc`. The table of `Mode::User` follows it.
fn tables_of(space: usize) -> usize {
    2 + 2 * space
}

const EMPTY: Entry = Entry { read: NONE, write: NONE, exec: NONE, addend: 0 };

/// Number of ways of a table.
const WAYS: usize = 2;

/// Number of parts of a table. A flush skips the parts that hold no entries.
const PARTS: u32 = u64::BITS;

/// Maximum number of entries in the list of entries with write tags. Dropping the tags of more entries by a pass over all
/// tables is about as fast.
const WRITES_MAX: usize = 1 << 13;

/// Kinds of access that a new entry permits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allow {
    pub read: bool,
    pub write: bool,
    pub exec: bool,
}

#[derive(Debug)]
pub(crate) struct Tlb {
    /// All tables. Those of an address space are added when it is first entered.
    entries: Vec<Entry>,
    /// Host address of the current mode's first entry. Translated code reads it.
    pub(crate) table: u64,
    /// Number of entries per way of a table, minus one. The number is a power of two.
    mask: usize,
    /// Index of the current mode's first entry.
    base: usize,
    mode: Mode,
    /// Number of the current address space.
    space: usize,
    /// For each mode, the index of its first entry in the current address space.
    bases: [usize; 4],
    /// True if every access must miss. All modes then use the empty table.
    bypass: bool,
    /// For each table, one bit for each of its 64 parts: set if the part may hold entries.
    used: Vec<u64>,
    /// Binary logarithm of the number of entries in a part.
    part_shift: u32,
    /// Indices, in the first way, of all slots that may have a write tag, unless there are more than [`WRITES_MAX`] of
    /// them: then `has_more_writes` is true.
    writes: Vec<u32>,
    has_more_writes: bool,
    /// True if the table of `Mode::Kernel` may hold addresses in the lower half of the address space. Also set by fills
    /// that `bypass` suppresses: code at the address may have run, and this field decides whether the epoch of
    /// `Mode::Kernel` (see `epoch`) ends with a change of CR3.
    kernel_below: bool,
    /// Current epoch of each mode (see `epoch`). No two modes have the same epoch, and no two address spaces have, except
    /// in `Mode::Kernel`.
    epochs: [u64; 4],
    /// For each address space, its epochs when it was left, or zeros if they are over.
    left: [[u64; 4]; SPACES],
    /// Highest epoch number issued so far.
    last_epoch: u64,
    /// Epoch of the current mode. Translated code compares it with the epochs in the tables of recent calls, jumps and
    /// pages (`core::native`). While the epoch lasts, the code that was executed at an address is still at that address
    /// and still executable.
    pub(crate) epoch: u64,
}

impl Tlb {
    /// Creates a TLB with `entries` in each way of a table: a power of two, at least two. The lookup takes the entry for
    /// the first byte's page and compares its tag with the last byte's page. With at least two entries, neighbouring pages
    /// have different entries, so an access across two pages never matches.
    pub(crate) fn new(entries: usize) -> Tlb {
        assert!(entries.is_power_of_two() && entries > 1);
        let mut tlb = Tlb {
            entries: Vec::new(),
            table: 0,
            mask: entries - 1,
            base: 0,
            mode: Mode::Kernel,
            space: 0,
            bases: [0; 4],
            bypass: false,
            used: Vec::new(),
            part_shift: (WAYS * entries).trailing_zeros().saturating_sub(PARTS.trailing_zeros()),
            writes: Vec::new(),
            has_more_writes: false,
            kernel_below: false,
            epochs: [0; 4],
            left: [[0; 4]; SPACES],
            last_epoch: 0,
            epoch: 0,
        };
        tlb.enter(0);
        tlb.code_moves(Owners::MAX);
        tlb
    }
    /// Returns the number of entries per way of a table, minus one.
    pub(crate) fn mask(&self) -> usize {
        self.mask
    }
    /// Returns the number of entries per way of a table. It is also the distance between the entries of a slot.
    fn way(&self) -> usize {
        self.mask + 1
    }
    /// Returns the number of entries per table.
    fn size(&self) -> usize {
        WAYS * self.way()
    }
    #[inline(always)]
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }
    #[inline(always)]
    pub(crate) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        let of = if self.bypass { Mode::UserAligned } else { mode };
        self.base = self.bases[of as usize];
        self.table = &raw const self.entries[self.base] as u64;
        // The epoch follows the mode even with `bypass`, because the mode determines which pages are executable.
        self.epoch = self.epochs[mode as usize];
    }
    /// Returns the owner of a mode's entries in the current address space.
    pub(crate) fn owner(&self, mode: Mode) -> Owners {
        if mode == Mode::Kernel { KERNEL } else { owner_of(self.space) }
    }
    /// Makes an address space the current one. It still has the entries that it had when it was left, unless they were
    /// dropped.
    pub(crate) fn enter(&mut self, space: usize) {
        self.left[self.space] = self.epochs;
        self.space = space;
        let (tables, size) = (tables_of(space), self.size());
        if self.used.len() < tables + 2 {
            self.used.resize(tables + 2, 0);
            self.entries.resize((tables + 2) * size, EMPTY);
        }
        self.bases = [KERNEL_TABLE, tables, tables + 1, EMPTY_TABLE].map(|table| table * size);
        let left = self.left[space];
        for mode in [Mode::KernelAc, Mode::User, Mode::UserAligned].map(|mode| mode as usize) {
            self.epochs[mode] = left[mode];
        }
        if left[Mode::User as usize] == 0 {
            self.code_moves(owner_of(space));
        }
        self.set_mode(self.mode);
    }
    /// Begins new epochs for the code of some owners, because a linear address may now lead to other code.
    fn code_moves(&mut self, owners: Owners) {
        for (space, left) in self.left.iter_mut().enumerate() {
            if owners & owner_of(space) != 0 {
                *left = [0; 4];
            }
        }
        for mode in [Mode::Kernel, Mode::KernelAc, Mode::User, Mode::UserAligned] {
            if owners & self.owner(mode) != 0 {
                self.last_epoch += 1;
                self.epochs[mode as usize] = self.last_epoch;
            }
        }
        self.set_mode(self.mode);
    }
    /// Begins new epochs for all owners, because the contents of a page of code have changed.
    pub(crate) fn code_changes(&mut self) {
        self.code_moves(Owners::MAX);
    }
    /// True if the table of `Mode::Kernel` may have entries for the lower half of the address space.
    pub(crate) fn kernel_has_lower_half(&self) -> bool {
        self.kernel_below
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
        // SAFETY: `base` is a table's number times the size of tables, and the masked page number is less than the size of a
        // way. All tables up to those of the current address space are in `entries` (`enter`).
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
        let (i, second) = (self.index(va), self.index(va) + self.way());
        if allow.write {
            self.note_write_tag(i);
        }
        let old = self.entries[i];
        if !old.is_empty() && !old.is_of(page) {
            self.entries[second] = old;
        }
        let part = |i: usize| 1 << ((i - self.base) >> self.part_shift);
        let parts = part(i) | part(second);
        let table = self.base / self.size();
        self.used[table] |= parts;
        self.entries[i] = Entry {
            read: tag(allow.read),
            write: tag(allow.write),
            exec: tag(allow.exec),
            addend: host.wrapping_sub(page),
        };
    }
    /// Finds the entry for the page of `va` in the second way, if it permits this access, and exchanges it for the one in
    /// the first way. Returns the host address of `va`.
    pub(crate) fn take_second(&mut self, va: u64, access: Access) -> Option<u64> {
        let i = self.index(va);
        let there = i + self.way();
        let second = self.entries[there];
        let tag = match access {
            Access::Read => second.read,
            Access::Write => second.write,
            Access::Exec => second.exec,
        };
        if tag != va & PAGE_MASK {
            return None;
        }
        self.entries.swap(i, there);
        Some(va.wrapping_add(second.addend))
    }
    /// Notes that the slot of the entry with this index gets a write tag.
    fn note_write_tag(&mut self, index: usize) {
        match u32::try_from(index) {
            Ok(index) if self.writes.len() < WRITES_MAX => self.writes.push(index),
            _ => self.has_more_writes = true,
        }
    }
    /// Drops some owners' entries for one page.
    pub(crate) fn drop_page(&mut self, va: u64, owners: Owners) {
        self.code_moves(owners);
        let page = va & PAGE_MASK;
        let slot = (va >> 12) as usize & self.mask;
        for table in tables(owners, self.used.len()) {
            for way in 0..WAYS {
                let e = &mut self.entries[table * WAYS * (self.mask + 1) + way * (self.mask + 1) + slot];
                if e.is_of(page) {
                    *e = EMPTY;
                }
            }
        }
    }
    /// Drops the write tags of some owners' entries that map the page at this host address.
    pub(crate) fn drop_writes_to(&mut self, host: u64, owners: Owners) {
        self.for_each_used(owners, |e| {
            if e.write != NONE && e.write.wrapping_add(e.addend) == host {
                e.write = NONE;
            }
        });
    }
    /// Drops all write tags.
    pub(crate) fn drop_writes(&mut self) {
        if std::mem::take(&mut self.has_more_writes) {
            self.for_each_used(Owners::MAX, |e| e.write = NONE);
        } else {
            for &index in &self.writes {
                // The entry may have moved to the second way.
                self.entries[index as usize].write = NONE;
                self.entries[index as usize + self.mask + 1].write = NONE;
            }
        }
        self.writes.clear();
    }
    fn for_each_used(&mut self, owners: Owners, mut each: impl FnMut(&mut Entry)) {
        let size = self.size();
        for table in tables(owners, self.used.len()).filter(|&table| self.used[table] != 0) {
            let entries = &mut self.entries[table * size..][..size];
            for (n, part) in entries.chunks_mut(1 << self.part_shift).enumerate() {
                if self.used[table] & 1 << n != 0 {
                    part.iter_mut().for_each(&mut each);
                }
            }
        }
    }
    /// Drops all entries of some owners.
    pub(crate) fn drop_all(&mut self, owners: Owners) {
        self.code_moves(owners);
        self.for_each_used(owners, |e| *e = EMPTY);
        for table in tables(owners, self.used.len()) {
            self.used[table] = 0;
        }
        self.kernel_below &= owners & KERNEL == 0;
    }
}

/// Returns the numbers of some owners' tables, of `count` tables in all.
fn tables(owners: Owners, count: usize) -> impl Iterator<Item = usize> {
    let is_owned = move |table: &usize| match *table {
        KERNEL_TABLE => owners & KERNEL != 0,
        EMPTY_TABLE => false,
        of_space => owners & owner_of((of_space - tables_of(0)) / 2) != 0,
    };
    (0..count).filter(is_owned)
}

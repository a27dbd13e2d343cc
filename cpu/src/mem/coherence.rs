//! Keeps TLB entries and decoded code true to guest memory. A mark on a guest-physical page says what the CPU derived
//! from the page: decoded code or TLB entries. A store to a marked page drops what was derived.
//!
//! x86 permits a CPU to keep stale TLB entries until software invalidates them. Which stale entries survive would
//! depend on the size of the TLB, and a guest's results must not. This CPU therefore keeps none. A page walk marks the
//! pages that it uses as page tables. A store that changes a present entry of a marked page drops all TLB entries
//! derived from it. Pages with decoded code have a mark of their own.
//!
//! Each mark `TABLE` names its owners: whose entries were derived from the page. Kernels share the upper half of the
//! address space between processes, so entries of the kernel survive a change of CR3, and those of an address space
//! wait until the guest enters it again ([`Mem::root_changes`]).
//!
//! **Invariant.** A page has the mark `TABLE`, and an owner among its owners, if a live TLB entry of this owner was
//! derived from the page. It also has the mark if a page walk used it to translate the address of code in the owner's
//! current epoch ([`Tlb::epoch`](super::tlb::Tlb::epoch)), even if the TLB entry is gone. If a page has a content
//! number, which identifies its bytes, it has the mark `CODE`. A page with either mark has no write tag in the TLB, i.e.
//! no entry that permits stores, so every store to the page takes the slow path.

use super::spaces::Spaces;
use super::tlb::{KERNEL, Mode, Owners, owner_of};
use super::{Mem, Ram};
use crate::zeroed::Zeroed;
use bytemuck::Zeroable;

/// Mark of a page from which code was decoded.
pub(super) const CODE: u8 = 1;
/// Mark of a page that a page walk used as a paging structure.
pub(super) const TABLE: u8 = 2;
/// Mark of a page that was written since [`Mem::take_dirty`] last returned the written pages.
pub(super) const DIRTY: u8 = 4;

/// Value of `TableUse::span` for a table that page walks reached at several levels or for several address ranges.
const MANY: u64 = u64::MAX;
/// Level of the root table.
const ROOT_LEVEL: u32 = 4;
/// First address of the upper half.
const ABOVE: u64 = 0xffff << 48 | 1 << 47;

/// Marks of a page and its write tags. They are side by side because a TLB miss of a store needs all of them.
#[derive(Debug, Clone, Copy, Zeroable)]
struct Page {
    /// Value of `Marks::epoch` when the page last got a write tag.
    write_epoch: u32,
    /// Owners of the page's write tags in the epoch of `write_epoch`.
    writers: Owners,
    bits: u8,
}

/// Use of a page as a paging structure. Valid while the page has the mark `TABLE`.
#[derive(Debug, Clone, Copy, Zeroable)]
struct TableUse {
    /// First address that the table maps plus its level, or `MANY`.
    span: u64,
    /// Owners of entries that were derived from the table.
    owners: Owners,
}

#[derive(Debug)]
pub(super) struct Marks {
    pages: Zeroed<Page>,
    /// For each page, its content number (`decode::contents`), or 0 without the mark `CODE`.
    content: Zeroed<u64>,
    /// For each page, the content number that it last lost through a write, or 0.
    content_before: Zeroed<u64>,
    table_use: Zeroed<TableUse>,
    tables: Vec<u32>,
    dirty: Vec<u32>,
    /// Epoch of the write tags: starts at 1, and increases at every flush of the whole TLB. Write tags older than the
    /// last flush are gone. This epoch differs from that of [`Tlb`](super::tlb::Tlb).
    epoch: u32,
}

impl Marks {
    pub(super) fn new(ram_len: u64) -> Marks {
        let n = (ram_len >> 12) as usize;
        Marks {
            pages: Zeroed::new(n),
            content: Zeroed::new(n),
            content_before: Zeroed::new(n),
            table_use: Zeroed::new(n),
            tables: Vec::new(),
            dirty: Vec::new(),
            epoch: 1,
        }
    }
}

impl Mem {
    #[inline(always)]
    pub(super) fn marks_of(&self, gpa: u64) -> u8 {
        self.marks.pages[(gpa >> 12) as usize].bits
    }
    /// Returns the content number of a page, or 0 if the page is not known as code.
    #[inline(always)]
    pub(crate) fn content(&self, gpa: u64) -> u64 {
        self.marks.content[(gpa >> 12) as usize]
    }
    /// Returns the content number that the page last lost through a write, or 0. Later writes to the page without the
    /// mark `CODE` do not change it.
    pub(crate) fn content_before(&self, gpa: u64) -> u64 {
        self.marks.content_before[(gpa >> 12) as usize]
    }
    /// Returns the host address of the table of content numbers. Translated code reads that table.
    pub(crate) fn contents_address(&self) -> u64 {
        self.marks.content.as_ptr() as u64
    }
    /// Marks a page of RAM as a source of decoded code, and stores its content number.
    pub(crate) fn mark_code(&mut self, gpa: u64, content: u64) {
        let page = (gpa >> 12) as usize;
        self.marks.content[page] = content;
        let bits = &mut self.marks.pages[page].bits;
        if *bits & CODE == 0 {
            *bits |= CODE;
            self.forbid_writes(page);
        }
    }
    /// Marks a page of RAM as a paging structure of `level` (1 is the lowest), which a page walk for `va` in `mode` used.
    pub(super) fn mark_table(&mut self, gpa: u64, level: u32, va: u64, mode: Mode) {
        let page = (gpa >> 12) as usize;
        let span = va & !((1u64 << (12 + 9 * level)) - 1) | u64::from(level);
        let owner = self.tlb.owner(mode);
        let (bits, table_use) = (&mut self.marks.pages[page].bits, &mut self.marks.table_use[page]);
        if *bits & TABLE == 0 {
            *bits |= TABLE;
            *table_use = TableUse { span, owners: owner };
            self.marks.tables.push(page as u32);
            self.forbid_writes(page);
            return;
        }
        table_use.owners |= owner;
        if table_use.span != span {
            table_use.span = MANY;
        }
    }
    fn forbid_writes(&mut self, page: usize) {
        let marks = &mut self.marks.pages[page];
        if std::mem::take(&mut marks.write_epoch) == self.marks.epoch {
            let host = self.ram.base_address() + ((page as u64) << 12);
            self.tlb.drop_writes_to(host, marks.writers);
        }
    }
    /// Returns true if the page may get a write tag in the current mode: it is dirty and has neither `CODE` nor `TABLE`.
    /// The caller then adds the tag, so the page's write epoch is updated here.
    pub(super) fn allow_write_tag(&mut self, gpa: u64) -> bool {
        let page = &mut self.marks.pages[(gpa >> 12) as usize];
        if page.bits & (CODE | TABLE | DIRTY) != DIRTY {
            return false;
        }
        let before = std::mem::replace(&mut page.write_epoch, self.marks.epoch);
        let others = if before == self.marks.epoch { page.writers } else { 0 };
        page.writers = others | self.tlb.owner(self.tlb.mode());
        true
    }
    /// Does the bookkeeping for a write to a page by the CPU or a device. [`Mem::entry_changed`] handles changes of
    /// paging entries.
    #[inline]
    pub(super) fn note_write(&mut self, gpa: u64) {
        let page = (gpa >> 12) as usize;
        let bits = &mut self.marks.pages[page].bits;
        let had = *bits;
        if had & DIRTY == 0 {
            *bits |= DIRTY;
            self.marks.dirty.push(page as u32);
        }
        if had & CODE != 0 {
            self.drop_code(page);
        }
    }
    fn drop_code(&mut self, page: usize) {
        self.marks.pages[page].bits &= !CODE;
        self.marks.content_before[page] = std::mem::take(&mut self.marks.content[page]);
        self.tlb.code_changes();
    }
    /// Marks a page as dirty, without dropping decoded code.
    pub(super) fn note_dirty_only(&mut self, gpa: u64) {
        let page = (gpa >> 12) as usize;
        let bits = &mut self.marks.pages[page].bits;
        if *bits & DIRTY == 0 {
            *bits |= DIRTY;
            self.marks.dirty.push(page as u32);
        }
    }
    /// Drops everything derived from the paging entry at `gpa`, which was present and has changed.
    pub(super) fn entry_changed(&mut self, gpa: u64) {
        let page = (gpa >> 12) as usize;
        let TableUse { span, owners } = self.marks.table_use[page];
        if span != MANY && span & 7 == 1 {
            self.tlb.drop_page((span & !0xfff) + ((gpa & 0xff8) << 9), owners);
        } else {
            self.drop_entries(owners);
        }
    }
    /// Handles a change of the root of the page tables. Kernels map the same upper half into every address space. If
    /// both roots have equal entries for the upper half, the kernel's TLB entries survive, unless some are for the lower
    /// half: page walks from the new root would find the same pages, and all accessed bits that they would set are
    /// already set. The entries of both address spaces survive, too: their tables are still marked. Otherwise, all
    /// TLB entries are dropped.
    pub(super) fn root_changes(&mut self, from: u64, to: u64) {
        const HALF: u64 = 2048;
        let are_tables = [from, to].iter().all(|&root| self.ram.contains(root, 2 * HALF));
        let is_shared = are_tables
            && !self.tlb.kernel_has_lower_half()
            && self.ram.same(from + HALF, &self.ram, to + HALF, HALF);
        if !is_shared {
            self.flush_tlb();
        }
        self.enter_space(to);
        if is_shared {
            // The kernel's entries now count as derived from the new root.
            self.mark_table(to, ROOT_LEVEL, ABOVE, Mode::Kernel);
        }
    }
    /// Makes the address space with this root the current one.
    fn enter_space(&mut self, root: u64) {
        let (space, is_known) = self.spaces.enter(root);
        if !is_known {
            self.drop_entries(owner_of(space));
        }
        self.tlb.enter(space);
    }
    /// Drops all TLB entries, and forgets all address spaces but the one with this root.
    pub(super) fn begin_with(&mut self, root: u64) {
        self.flush_tlb();
        self.spaces = Spaces::default();
        self.enter_space(root);
    }
    /// Drops all TLB entries of some owners.
    fn drop_entries(&mut self, owners: Owners) {
        if owners & KERNEL != 0 {
            self.flush_tlb();
            return;
        }
        self.tlb.drop_all(owners);
        let Marks { tables, pages, table_use, .. } = &mut self.marks;
        tables.retain(|&page| {
            let left = &mut table_use[page as usize].owners;
            *left &= !owners;
            if *left == 0 {
                pages[page as usize].bits &= !TABLE;
            }
            *left != 0
        });
    }
    /// Drops all TLB entries.
    pub(crate) fn flush_tlb(&mut self) {
        self.tlb.drop_all(Owners::MAX);
        self.marks.epoch = self.marks.epoch.wrapping_add(1).max(1);
        for page in self.marks.tables.drain(..) {
            self.marks.pages[page as usize].bits &= !TABLE;
        }
    }
    /// Handles a write to RAM by something other than the CPU, such as a device.
    pub(crate) fn written_outside(&mut self, gpa: u64, len: u64) {
        let end = gpa.saturating_add(len).min(self.ram.len());
        let mut page = gpa & !0xfff;
        while page < end {
            self.note_write(page);
            if self.marks_of(page) & TABLE != 0 {
                self.flush_tlb();
            }
            page += 4096;
        }
    }
    /// Handles a restore that replaced the contents of these pages. Clears the dirty marks of all pages.
    pub(crate) fn replaced(&mut self, pages: &[u64]) {
        for &page in pages {
            let page = page as usize;
            if self.marks.pages[page].bits & CODE != 0 {
                self.drop_code(page);
            }
        }
        for page in self.marks.dirty.drain(..) {
            self.marks.pages[page as usize].bits &= !DIRTY;
        }
        self.flush_tlb();
    }
    /// Returns the numbers of the pages written since the last call, in ascending order.
    pub(crate) fn take_dirty(&mut self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.marks.dirty.iter().map(|&p| u64::from(p)).collect();
        pages.sort_unstable();
        for page in self.marks.dirty.drain(..) {
            self.marks.pages[page as usize].bits &= !DIRTY;
        }
        self.tlb.drop_writes();
        pages
    }
    /// Returns guest RAM for reading.
    pub(crate) fn ram(&self) -> &Ram {
        &self.ram
    }
}

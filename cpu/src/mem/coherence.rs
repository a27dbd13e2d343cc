//! Marks on physical pages, and what a store to a marked page drops.
//!
//! x86 lets a CPU cache translations and requires software to invalidate them. Which stale ones survive would depend on
//! the size of the TLB, so there are none here: a page that was walked as a page table is marked, and a store that
//! changes a present entry drops what came from it. Pages with decoded code are marked likewise.
//!
//! Tables of the upper half of the address space outlive a change of CR3 ([`Mem::root_changes`]): kernels have them in common.
//!
//! **Invariant.** Every page that a live TLB entry was derived from carries `TABLE`, and so does every one by which code was found in
//! the current epoch ([`Tlb::epoch`](super::tlb::Tlb::epoch)), whether its entry is still there or not. A page whose content has a number carries
//! `CODE`. A page with either has no write tag in the TLB.

use super::{Mem, Ram};
use crate::zeroed::Zeroed;

/// Code was decoded from this page.
pub(super) const CODE: u8 = 1;
/// This page was walked as a paging structure, for an address below the middle of the address space.
const TABLE_BELOW: u8 = 2;
/// The same, for an address above it.
const TABLE_ABOVE: u8 = 8;
/// Either.
pub(super) const TABLE: u8 = TABLE_BELOW | TABLE_ABOVE;
/// This page was written since the dirty pages were last taken.
pub(super) const DIRTY: u8 = 4;

/// `Marks::table_use` of a table that was reached at several levels or for several address ranges.
const MANY: u64 = u64::MAX;
/// The level of the root.
const ROOT_LEVEL: u32 = 4;
/// The first address above the middle.
const ABOVE: u64 = 0xffff << 48 | 1 << 47;

/// Whether an address, which is canonical, lies above the middle of the address space.
fn is_above(va: u64) -> bool {
    va >= ABOVE
}

#[derive(Debug)]
pub(super) struct Marks {
    bits: Zeroed<u8>,
    /// For pages with `CODE`: the number of what they hold ([`crate::decode::contents`]); 0 for others.
    content: Zeroed<u64>,
    /// What pages held before they were written.
    content_before: Zeroed<u64>,
    /// For pages with `TABLE`: the first address that the table maps, plus its level; or `MANY`.
    table_use: Zeroed<u64>,
    tables: Vec<u32>,
    dirty: Vec<u32>,
    /// The TLB epoch in which the page last got a write tag.
    write_epoch: Zeroed<u32>,
    /// Counts flushes; write tags of an older epoch are gone.
    epoch: u32,
}

impl Marks {
    pub(super) fn new(ram_len: u64) -> Marks {
        let n = (ram_len >> 12) as usize;
        Marks {
            bits: Zeroed::new(n),
            content: Zeroed::new(n),
            content_before: Zeroed::new(n),
            table_use: Zeroed::new(n),
            tables: Vec::new(),
            dirty: Vec::new(),
            write_epoch: Zeroed::new(n),
            epoch: 1,
        }
    }
}

impl Mem {
    #[inline(always)]
    pub(super) fn marks_of(&self, gpa: u64) -> u8 {
        self.marks.bits[(gpa >> 12) as usize]
    }
    /// The number of what a page of RAM holds, or 0 if it is not known as code.
    #[inline(always)]
    pub(crate) fn content(&self, gpa: u64) -> u64 {
        self.marks.content[(gpa >> 12) as usize]
    }
    /// The number of what it held before it was written, or 0.
    pub(crate) fn content_before(&self, gpa: u64) -> u64 {
        self.marks.content_before[(gpa >> 12) as usize]
    }
    /// Where translated code finds the numbers of all pages.
    pub(crate) fn contents_address(&self) -> u64 {
        self.marks.content.as_ptr() as u64
    }
    /// Mark a page of RAM as a source of decoded code, with the number of what it holds.
    pub(crate) fn mark_code(&mut self, gpa: u64, content: u64) {
        let page = (gpa >> 12) as usize;
        self.marks.content[page] = content;
        if self.marks.bits[page] & CODE == 0 {
            self.marks.bits[page] |= CODE;
            self.forbid_writes(page);
        }
    }
    /// Mark a page of RAM as a table of `level` (1 is the lowest) that was reached for `va`.
    pub(super) fn mark_table(&mut self, gpa: u64, level: u32, va: u64) {
        let page = (gpa >> 12) as usize;
        let span = va & !((1u64 << (12 + 9 * level)) - 1) | u64::from(level);
        let half = if is_above(va) { TABLE_ABOVE } else { TABLE_BELOW };
        let before = self.marks.bits[page];
        self.marks.bits[page] = before | half;
        if before & TABLE == 0 {
            self.marks.table_use[page] = span;
            self.marks.tables.push(page as u32);
            self.forbid_writes(page);
        } else if self.marks.table_use[page] != span {
            self.marks.table_use[page] = MANY;
        }
    }
    fn forbid_writes(&mut self, page: usize) {
        if std::mem::take(&mut self.marks.write_epoch[page]) == self.marks.epoch {
            self.tlb.drop_writes_to(self.ram.base_address() + ((page as u64) << 12));
        }
    }
    /// Whether a write tag may be given to the page, which is about to be written or is dirty already.
    pub(super) fn allow_write_tag(&mut self, gpa: u64) -> bool {
        let page = (gpa >> 12) as usize;
        if self.marks.bits[page] & (CODE | TABLE | DIRTY) == DIRTY {
            self.marks.write_epoch[page] = self.marks.epoch;
            return true;
        }
        false
    }
    /// Bookkeeping of a write to a page by anyone, paging entries' changes aside.
    #[inline]
    pub(super) fn note_write(&mut self, gpa: u64) {
        let page = (gpa >> 12) as usize;
        let bits = self.marks.bits[page];
        if bits & DIRTY == 0 {
            self.marks.bits[page] |= DIRTY;
            self.marks.dirty.push(page as u32);
        }
        if bits & CODE != 0 {
            self.drop_code(page);
        }
    }
    fn drop_code(&mut self, page: usize) {
        self.marks.bits[page] &= !CODE;
        self.marks.content_before[page] = std::mem::take(&mut self.marks.content[page]);
        self.tlb.code_changes();
    }
    /// Mark a page as dirty ahead of a write tag.
    pub(super) fn note_dirty_only(&mut self, gpa: u64) {
        let page = (gpa >> 12) as usize;
        if self.marks.bits[page] & DIRTY == 0 {
            self.marks.bits[page] |= DIRTY;
            self.marks.dirty.push(page as u32);
        }
    }
    /// Drop what was derived from the paging entry at `gpa`, which changed and was present.
    pub(super) fn entry_changed(&mut self, gpa: u64) {
        let used = self.marks.table_use[(gpa >> 12) as usize];
        if used != MANY && used & 7 == 1 {
            self.tlb.drop_page((used & !0xfff) + ((gpa & 0xff8) << 9));
        } else {
            self.flush_tlb();
        }
    }
    /// The root of the page tables changes. Kernels map the same above the middle of every address space: where all entries
    /// of the two roots for it are equal, a walk finds the same, and has nothing to set, so that what is known stays.
    pub(super) fn root_changes(&mut self, from: u64, to: u64) {
        const HALF: u64 = 2048;
        let are_tables = [from, to].iter().all(|&root| self.ram.contains(root, 2 * HALF));
        if are_tables && self.ram.same(from + HALF, &self.ram, to + HALF, HALF) {
            self.tlb.flush_below();
            self.marks.tables.retain(|&page| {
                let bits = &mut self.marks.bits[page as usize];
                *bits &= !TABLE_BELOW;
                *bits & TABLE != 0
            });
            // What stays comes from this root from here on.
            self.mark_table(to, ROOT_LEVEL, ABOVE);
        } else {
            self.flush_tlb();
        }
    }
    /// Drop every translation.
    pub(crate) fn flush_tlb(&mut self) {
        self.tlb.flush();
        self.marks.epoch = self.marks.epoch.wrapping_add(1).max(1);
        for page in self.marks.tables.drain(..) {
            self.marks.bits[page as usize] &= !TABLE;
        }
    }
    /// Somebody other than the CPU wrote RAM.
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
    /// The contents of these pages of RAM were replaced by a restore, and nothing counts as written since.
    pub(crate) fn replaced(&mut self, pages: &[u64]) {
        for &page in pages {
            let page = page as usize;
            if self.marks.bits[page] & CODE != 0 {
                self.drop_code(page);
            }
        }
        for page in self.marks.dirty.drain(..) {
            self.marks.bits[page as usize] &= !DIRTY;
        }
        self.flush_tlb();
    }
    /// Pages written since the last call, ascending.
    pub(crate) fn take_dirty(&mut self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.marks.dirty.iter().map(|&p| u64::from(p)).collect();
        pages.sort_unstable();
        for page in self.marks.dirty.drain(..) {
            self.marks.bits[page as usize] &= !DIRTY;
        }
        self.tlb.drop_writes();
        pages
    }
    /// Guest RAM.
    pub(crate) fn ram(&self) -> &Ram {
        &self.ram
    }
}

//! 4-level paging (SDM vol. 3A, sections 4.5-4.8).
//!
//! Accessed and dirty bits are set after the whole walk has succeeded, root level first. A walk that faults changes
//! nothing. Hardware may set accessed bits of upper levels before it faults; the manual permits either.

use super::coherence::CODE;
use super::kind::Access;
use super::tlb::{Allow, Mode};
use super::{Mem, canonical};
use crate::stop::Stop;

/// Physical address bits of the modelled CPU.
pub(crate) const PHYSICAL_BITS: u32 = 39;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;
/// Bits of a paging entry that hold the physical address of the next table or of the page.
pub(super) const ADDRESS: u64 = ((1 << PHYSICAL_BITS) - 1) & !0xfff;
/// Reserved bits of a paging entry: from the physical address width to bit 51.
const RESERVED: u64 = ((1 << 52) - 1) & !((1 << PHYSICAL_BITS) - 1);

/// Bits of the page-fault error code (SDM vol. 3A, 4.7).
mod error {
    pub(super) const PRESENT: u32 = 1;
    pub(super) const WRITE: u32 = 2;
    pub(super) const USER: u32 = 4;
    pub(super) const RESERVED: u32 = 8;
    pub(super) const FETCH: u32 = 16;
}

/// Result of a successful page walk: the physical address and the combined permissions.
#[derive(Debug, Clone, Copy)]
struct Leaf {
    gpa: u64,
    entry_gpa: [u64; 4],
    levels: usize,
    user: bool,
    writable: bool,
    no_execute: bool,
    dirty: bool,
}

/// A failed page walk. `reserved` is the RSVD bit of the error code.
#[derive(Debug, Clone, Copy)]
struct Broken {
    reserved: bool,
}

impl Mem {
    /// Walks the page tables for `va`. Sets no accessed or dirty bits.
    fn walk(&self, va: u64) -> Result<Leaf, Broken> {
        let nx_reserved = if self.paging.nxe { 0 } else { NO_EXECUTE };
        let mut table = self.paging.cr3 & ADDRESS;
        let mut leaf = Leaf {
            gpa: 0,
            entry_gpa: [0; 4],
            levels: 0,
            user: true,
            writable: true,
            no_execute: false,
            dirty: false,
        };
        for level in (1..=4u32).rev() {
            let shift = 12 + 9 * (level - 1);
            let at = table + ((va >> shift) & 0x1ff) * 8;
            // A table outside RAM reads as all ones, so a reserved bit is set.
            let entry = if self.ram.contains(at, 8) { self.ram.load::<u64>(at) } else { u64::MAX };
            if entry & PRESENT == 0 {
                return Err(Broken { reserved: false });
            }
            let large = entry & LARGE != 0 && level > 1;
            let misaligned = if large { ((1u64 << shift) - 1) & ADDRESS & !(1 << 12) } else { 0 };
            let reserved = RESERVED | nx_reserved | misaligned | if level == 4 { LARGE } else { 0 };
            if entry & reserved != 0 {
                return Err(Broken { reserved: true });
            }
            leaf.entry_gpa[leaf.levels] = at;
            leaf.levels += 1;
            leaf.user &= entry & USER != 0;
            leaf.writable &= entry & WRITABLE != 0;
            leaf.no_execute |= entry & NO_EXECUTE != 0;
            if level == 1 || large {
                let offset = va & ((1 << shift) - 1);
                leaf.gpa = (entry & ADDRESS & !((1 << shift) - 1)) | offset;
                leaf.dirty = entry & DIRTY != 0;
                return Ok(leaf);
            }
            table = entry & ADDRESS;
        }
        unreachable!("level 1 always ends the walk")
    }

    fn allowed(&self, leaf: &Leaf, mode: Mode) -> Allow {
        let p = &self.paging;
        match mode {
            Mode::User | Mode::UserAligned => Allow {
                read: leaf.user,
                write: leaf.user && leaf.writable,
                exec: leaf.user && !leaf.no_execute,
            },
            Mode::Kernel | Mode::KernelAc => {
                let data = !(leaf.user && p.smap && mode == Mode::Kernel);
                Allow {
                    read: data,
                    write: data && (leaf.writable || !p.write_protect),
                    exec: !(leaf.no_execute || (leaf.user && p.smep)),
                }
            }
        }
    }

    /// Translates `va` for an access in `mode`. Sets A and D bits, and fills the TLB if `mode` is the current mode.
    pub(crate) fn translate(&mut self, va: u64, access: Access, mode: Mode) -> Result<u64, Stop> {
        if !canonical(va) {
            return Err(self.non_canonical());
        }
        if mode == self.tlb.mode()
            && let Some(host) = self.tlb.take_second(va, access)
        {
            return Ok(host.wrapping_sub(self.ram.base_address()));
        }
        let user = matches!(mode, Mode::User | Mode::UserAligned);
        let code = |p: &super::PagingControl| {
            let fetch = access == Access::Exec && (p.nxe || p.smep);
            (if access == Access::Write { error::WRITE } else { 0 })
                | (if user { error::USER } else { 0 })
                | (if fetch { error::FETCH } else { 0 })
        };
        let leaf = match self.walk(va) {
            Ok(leaf) => leaf,
            Err(Broken { reserved }) => {
                let code = code(&self.paging) | if reserved { error::RESERVED | error::PRESENT } else { 0 };
                return Err(self.page_fault(va, code));
            }
        };
        let mut allow = self.allowed(&leaf, mode);
        let granted = match access {
            Access::Read => allow.read,
            Access::Write => allow.write,
            Access::Exec => allow.exec,
        };
        if !granted {
            let code = code(&self.paging) | error::PRESENT;
            return Err(self.page_fault(va, code));
        }
        if access != Access::Exec && !self.single && self.noting_changes_code(&leaf, access == Access::Write)
        {
            return Err(Stop::Single);
        }
        self.set_accessed(&leaf, va, access == Access::Write, mode);
        if mode == self.tlb.mode() && self.ram.contains(leaf.gpa & !0xfff, 4096) {
            if self.page_is_watched(va) {
                (allow.read, allow.write) = (false, false);
            }
            allow.exec &= !self.page_has_breakpoint(va);
            allow.write &= (leaf.dirty || access == Access::Write) && self.allow_write_tag(leaf.gpa);
            self.tlb.fill(va, self.ram.base_address() + (leaf.gpa & !0xfff), allow);
        }
        Ok(leaf.gpa)
    }

    /// True if the walk must set an A or D bit in a paging entry on a page with decoded code. The CPU then executes the
    /// instruction alone, because the next instruction of its block may have been decoded from the old entry.
    fn noting_changes_code(&self, leaf: &Leaf, write: bool) -> bool {
        leaf.entry_gpa[..leaf.levels].iter().enumerate().any(|(i, &at)| {
            let want = if write && i + 1 == leaf.levels { ACCESSED | DIRTY } else { ACCESSED };
            self.marks_of(at) & CODE != 0 && self.ram.load::<u64>(at) & want != want
        })
    }

    fn set_accessed(&mut self, leaf: &Leaf, va: u64, write: bool, mode: Mode) {
        for i in 0..leaf.levels {
            let at = leaf.entry_gpa[i];
            let last = i + 1 == leaf.levels;
            let want = ACCESSED | if last && write { DIRTY } else { 0 };
            let entry = self.ram.load::<u64>(at);
            if entry & want != want {
                self.note_write(at);
                self.ram.store(at, entry | want);
            }
            self.mark_table(at, 4 - i as u32, va, mode);
        }
        if write && self.ram.contains(leaf.gpa, 1) {
            self.note_dirty_only(leaf.gpa);
        }
    }

    /// Translates `va` without side effects, for observers. Returns `None` if no page is mapped at `va`.
    pub(crate) fn peek(&self, va: u64) -> Option<u64> {
        if !canonical(va) {
            return None;
        }
        self.walk(va).ok().map(|leaf| leaf.gpa)
    }
}

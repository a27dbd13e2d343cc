//! Guest memory as the CPU sees it: RAM, paging, the software TLB and its coherence, and device accesses.
//!
//! - [`ram`]: the host mapping that holds guest RAM (raw pointers)
//! - [`tlb`]: the cache that maps guest-virtual pages to host addresses (raw pointers)
//! - [`walk`]: 4-level paging, permissions, accessed and dirty bits
//! - [`spaces`]: address spaces whose TLB entries are kept
//! - [`coherence`]: marks on physical pages from which the CPU decoded code or filled the TLB, and the effect of stores
//!   to these pages
//! - [`access`]: loads and stores of all widths: TLB hits and misses, accesses that cross a page boundary, and MMIO
//! - [`kind`]: kinds of memory accesses
//! - [`mmio`]: requests for ports and for addresses that are not RAM, and their answers
//! - [`data_breakpoints`]: data breakpoints that the guest sets
//! - [`watchpoints`]: watchpoints that the operator sets
//! - [`breakpoints`]: breakpoints that the operator sets
//! - [`bulk`]: executes many iterations of a repeated string instruction at once, within a page
//!
//! **Invariant.** Results equal those of a CPU without a TLB: a store to a paging entry takes effect at the next
//! instruction, even if the guest does not invalidate the entry.

pub(crate) mod access;
mod breakpoints;
mod bulk;
mod coherence;
mod data_breakpoints;
mod kind;
pub(crate) mod mmio;
mod ram;
mod spaces;
pub(crate) mod tlb;
mod walk;
mod watchpoints;

pub(crate) use kind::Access;
pub(crate) use ram::Prim;
pub use ram::Ram;
pub(crate) use tlb::Mode;
pub(crate) use walk::PHYSICAL_BITS;
pub use watchpoints::{HITS_MAX, Watchpoint, WatchpointHit};

use crate::stop::{Fault, Stop, vector};
use coherence::Marks;
use mmio::Mmio;
use spaces::Spaces;
use tlb::Tlb;

/// Register contents that paging depends on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PagingControl {
    pub cr3: u64,
    /// CR0.WP.
    pub write_protect: bool,
    /// CR4.SMEP.
    pub smep: bool,
    /// CR4.SMAP.
    pub smap: bool,
    /// EFER.NXE.
    pub nxe: bool,
}

/// Memory of one vCPU.
#[derive(Debug)]
pub(crate) struct Mem {
    pub(crate) ram: Ram,
    pub(crate) tlb: Tlb,
    pub(crate) paging: PagingControl,
    pub(crate) mmio: Mmio,
    marks: Marks,
    spaces: Spaces,
    watch: data_breakpoints::DataBreakpoints,
    points: watchpoints::Watchpoints,
    breakpoints: breakpoints::Breakpoints,
    /// Exception that was raised with the last `Stop::Fault`.
    pub(crate) fault: Fault,
    /// Linear address of the last page fault.
    pub(crate) fault_address: u64,
    /// True while the CPU delivers an exception or interrupt, or executes one instruction outside of a block (of a
    /// repeated instruction, one iteration). Only then may a store change decoded code or page tables.
    pub(crate) single: bool,
    /// Planted defect for tests of the determinism checks: stores to page tables leave stale TLB entries behind.
    pub(crate) leak_stale_tlb: bool,
}

impl Mem {
    pub(crate) fn new(ram: Ram, tlb_entries: usize) -> Mem {
        let marks = Marks::new(ram.len());
        Mem {
            ram,
            tlb: Tlb::new(tlb_entries),
            paging: PagingControl::default(),
            mmio: Mmio::default(),
            marks,
            spaces: Spaces::default(),
            watch: data_breakpoints::DataBreakpoints::default(),
            points: watchpoints::Watchpoints::default(),
            breakpoints: breakpoints::Breakpoints::default(),
            fault: Fault::default(),
            fault_address: 0,
            single: false,
            leak_stale_tlb: false,
        }
    }
    /// Replaces the register contents that paging depends on, and flushes the TLB.
    pub(crate) fn set_paging(&mut self, new: PagingControl) {
        self.paging = new;
        self.begin_with(new.cr3 & walk::ADDRESS);
    }
    /// Replaces CR3 only. TLB entries survive under the conditions of [`Mem::root_changes`].
    pub(crate) fn set_root(&mut self, cr3: u64) {
        let old = std::mem::replace(&mut self.paging.cr3, cr3);
        self.root_changes(old & walk::ADDRESS, cr3 & walk::ADDRESS);
    }
    /// Returns the guest-physical address of `va` if the TLB permits execution of the page.
    #[inline(always)]
    pub(crate) fn exec_gpa(&self, va: u64) -> Option<u64> {
        Some(self.tlb.exec_host(va)? - self.ram.base_address())
    }
    /// Raises #GP(0) for a non-canonical address.
    #[cold]
    pub(crate) fn non_canonical(&mut self) -> Stop {
        self.fault = Fault { vector: vector::GP, error: Some(0), non_canonical: true };
        Stop::Fault
    }
    #[cold]
    fn page_fault(&mut self, va: u64, error: u32) -> Stop {
        self.fault = Fault { vector: vector::PF, error: Some(error), non_canonical: false };
        self.fault_address = va;
        Stop::Fault
    }
}

/// True if the address is canonical: bits 63-47 are all equal.
#[inline(always)]
pub(crate) fn canonical(va: u64) -> bool {
    ((va as i64) << 16 >> 16) as u64 == va
}

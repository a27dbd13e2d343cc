//! Watchpoints that the operator sets on guest memory. The guest cannot observe them.
//!
//! Watched pages get no read or write tags in the TLB, so every access to them takes the slow path, even from
//! translated code. Accesses to other pages are as fast as without watchpoints. If an instruction is about to access
//! watched bytes, the CPU executes this instruction alone. The run (one call of `Cpu::run`) then ends.
//!
//! **Invariant.** The guest behaves the same with and without watchpoints.

use super::Mem;
use crate::stop::Stop;

/// Maximum number of stored hits. While this many are stored, further hits are lost.
pub const HITS_MAX: usize = 1 << 16;

/// A range of watched bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watchpoint {
    /// Linear address of the first byte. The watchpoint holds in every address space.
    pub address: u64,
    /// Length in bytes; not zero.
    pub len: u64,
    /// True if loads from these bytes are reported.
    pub loads: bool,
    /// True if stores to these bytes are reported.
    pub stores: bool,
}

impl Watchpoint {
    fn last(&self) -> u64 {
        self.address.saturating_add(self.len.max(1) - 1)
    }
    fn meets(&self, first: u64, last: u64) -> bool {
        first <= self.last() && last >= self.address
    }
}

/// An access to watched bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchpointHit {
    /// Address of the instruction that made the access. If the delivery of an interrupt or exception made the access,
    /// address of the instruction before which the delivery happened.
    pub rip: u64,
    /// Paging root (CR3) at the time of the access.
    pub cr3: u64,
    /// Linear address of the access.
    pub address: u64,
    /// Size of the access in bytes.
    pub size: u8,
    /// True for a store.
    pub store: bool,
    /// Low eight bytes of the loaded or stored value.
    pub value: u64,
}

/// All watchpoints and their hits.
#[derive(Debug, Default)]
pub(super) struct Watchpoints {
    points: Vec<Watchpoint>,
    hits: Vec<WatchpointHit>,
    /// Number of stored hits that have already ended a run.
    reported: usize,
    /// Address of the instruction to which the next hits are attributed.
    rip: u64,
}

impl Mem {
    /// Replaces all watchpoints.
    pub(crate) fn set_watchpoints(&mut self, points: &[Watchpoint]) {
        self.points.points = points.to_vec();
        self.flush_tlb();
    }
    /// Attributes all further accesses to the instruction at `rip`.
    pub(crate) fn attribute_accesses_to(&mut self, rip: u64) {
        self.points.rip = rip;
    }
    /// True if the page of `va` has watched bytes.
    pub(super) fn page_is_watched(&self, va: u64) -> bool {
        let (first, last) = (va & !0xfff, va | 0xfff);
        self.points.points.iter().any(|point| point.meets(first, last))
    }
    /// Returns `Err(Stop::Single)` if the access is watched and the CPU does not execute the instruction alone yet.
    #[inline]
    pub(super) fn check_watched(&self, va: u64, size: u64, store: bool) -> Result<(), Stop> {
        if !self.single && self.is_watched(va, size, store) { Err(Stop::Single) } else { Ok(()) }
    }
    /// Records the access if it is watched.
    #[inline]
    pub(super) fn note_watched(&mut self, va: u64, size: u64, store: bool, value: u128) {
        if self.is_watched(va, size, store) && self.points.hits.len() < HITS_MAX {
            let (rip, cr3) = (self.points.rip, self.paging.cr3);
            self.points.hits.push(WatchpointHit {
                rip,
                cr3,
                address: va,
                size: size as u8,
                store,
                value: value as u64,
            });
        }
    }
    fn is_watched(&self, va: u64, size: u64, store: bool) -> bool {
        let last = va.wrapping_add(size - 1);
        self.points.points.iter().any(|p| if store { p.stores } else { p.loads } && p.meets(va, last))
    }
    /// Returns true if there are hits that have not ended a run yet. The caller then ends the run.
    pub(crate) fn report_hits(&mut self) -> bool {
        let all = self.points.hits.len();
        std::mem::replace(&mut self.points.reported, all) < all
    }
    /// Returns the number of stored hits.
    pub(crate) fn hits(&self) -> usize {
        self.points.hits.len()
    }
    /// Drops the hits of an instruction that did not complete: when the CPU executes it again, it records them again.
    /// `count` is the number of hits before the instruction.
    pub(crate) fn keep_hits(&mut self, count: usize) {
        self.points.hits.truncate(count);
    }
    /// Returns and removes all hits.
    pub(crate) fn take_hits(&mut self) -> Vec<WatchpointHit> {
        self.points.reported = 0;
        std::mem::take(&mut self.points.hits)
    }
}

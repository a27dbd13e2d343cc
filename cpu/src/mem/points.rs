//! Watchpoints of the host's: it wants to know who accesses these bytes, and the guest must not notice.
//!
//! The pages they lie on get no read and write tags in the TLB, so that every access to them comes by here, from translated
//! code too. Everything else is as fast as without. An instruction that is about to touch such bytes is executed alone, as
//! one that stores to code is; the run ends behind it.
//!
//! **Invariant.** What the guest does is the same with and without watchpoints.

use super::Mem;
use crate::stop::Stop;

/// Hits that are kept until they are taken; later ones are lost.
pub const HITS_MAX: usize = 1 << 16;

/// Bytes that are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watchpoint {
    /// The first one's linear address, in whatever address space.
    pub address: u64,
    /// How many there are; not zero.
    pub len: u64,
    /// Loads count.
    pub loads: bool,
    /// Stores count.
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

/// An access that met a watchpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The instruction, or the one before which an interrupt or exception was delivered that did it.
    pub rip: u64,
    /// The paging root at that time: CR3.
    pub cr3: u64,
    /// Linear address of the access.
    pub address: u64,
    /// Bytes.
    pub size: u8,
    /// A store.
    pub store: bool,
    /// What was loaded or stored: its low eight bytes.
    pub value: u64,
}

/// All watchpoints, and who met them.
#[derive(Debug, Default)]
pub(super) struct Points {
    points: Vec<Watchpoint>,
    hits: Vec<Hit>,
    /// So many of them have ended a run.
    told: usize,
    /// Who does the accesses that come now.
    rip: u64,
}

impl Mem {
    /// Replace all watchpoints.
    pub(crate) fn set_watchpoints(&mut self, points: &[Watchpoint]) {
        self.points.points = points.to_vec();
        self.flush_tlb();
    }
    /// Accesses from here on are those of the instruction at `rip`.
    pub(crate) fn accesses_are_of(&mut self, rip: u64) {
        self.points.rip = rip;
    }
    /// Whether accesses to the page of an address have to come by here.
    pub(super) fn page_is_watched(&self, va: u64) -> bool {
        let (first, last) = (va & !0xfff, va | 0xfff);
        self.points.points.iter().any(|point| point.meets(first, last))
    }
    /// Whether the instruction has to be executed alone because of an access that it is about to make.
    #[inline]
    pub(super) fn check_watched(&self, va: u64, size: u64, store: bool) -> Result<(), Stop> {
        if !self.single && self.is_watched(va, size, store) { Err(Stop::Single) } else { Ok(()) }
    }
    /// An access was made.
    #[inline]
    pub(super) fn note_watched(&mut self, va: u64, size: u64, store: bool, value: u128) {
        if self.is_watched(va, size, store) && self.points.hits.len() < HITS_MAX {
            let (rip, cr3) = (self.points.rip, self.paging.cr3);
            self.points.hits.push(Hit {
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
    /// Whether one was met since this was asked last.
    pub(crate) fn tell_hits(&mut self) -> bool {
        let all = self.points.hits.len();
        std::mem::replace(&mut self.points.told, all) < all
    }
    /// How many accesses met a watchpoint since they were taken.
    pub(crate) fn hits(&self) -> usize {
        self.points.hits.len()
    }
    /// An instruction will be executed again: its accesses do not count yet.
    pub(crate) fn keep_hits(&mut self, count: usize) {
        self.points.hits.truncate(count);
    }
    /// All that met a watchpoint since the last call.
    pub(crate) fn take_hits(&mut self) -> Vec<Hit> {
        self.points.told = 0;
        std::mem::take(&mut self.points.hits)
    }
}

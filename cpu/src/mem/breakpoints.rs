//! Breakpoints that the operator sets on guest code. The guest cannot observe them.
//!
//! Pages with breakpoints get no execute tag in the TLB, so every jump to them takes the slow path, even from translated
//! code. The CPU interprets their blocks one by one, and executes a block's instructions one by one if a breakpoint lies
//! within it. Code on other pages is as fast as without breakpoints.
//!
//! **Invariant.** The guest behaves the same with and without breakpoints.

use super::Mem;

const PAGE_MASK: u64 = !0xfff;

/// All breakpoints.
#[derive(Debug, Default)]
pub(super) struct Breakpoints {
    /// Linear addresses, sorted. They hold in every address space.
    addresses: Vec<u64>,
}

impl Mem {
    /// Replaces all breakpoints.
    pub(crate) fn set_breakpoints(&mut self, addresses: &[u64]) {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        addresses.dedup();
        if addresses != self.breakpoints.addresses {
            self.breakpoints.addresses = addresses;
            self.flush_tlb();
        }
    }
    /// True if a breakpoint is at this linear address.
    #[inline(always)]
    pub(crate) fn has_breakpoint(&self, va: u64) -> bool {
        let addresses = &self.breakpoints.addresses;
        !addresses.is_empty() && addresses.binary_search(&va).is_ok()
    }
    /// True if a breakpoint is on the page of this linear address.
    #[inline(always)]
    pub(crate) fn page_has_breakpoint(&self, va: u64) -> bool {
        !self.breakpoints.addresses.is_empty() && self.lies_between(va & PAGE_MASK, va | !PAGE_MASK)
    }
    /// True if a breakpoint lies behind `va`, in the first `len` bytes from `va` on.
    pub(crate) fn has_breakpoint_behind(&self, va: u64, len: u64) -> bool {
        len > 1 && self.lies_between(va.saturating_add(1), va.saturating_add(len - 1))
    }
    /// True if a breakpoint lies in this range of linear addresses, both ends included.
    fn lies_between(&self, first: u64, last: u64) -> bool {
        let addresses = &self.breakpoints.addresses;
        addresses.get(addresses.partition_point(|&at| at < first)).is_some_and(|&at| at <= last)
    }
}

//! Data breakpoints: DR0-DR3 with R/W 01 or 11 (SDM vol. 3B, 18.2).
//!
//! While a data breakpoint is enabled, every access bypasses the TLB, and the run loop executes one instruction at a
//! time. Guests without data breakpoints pay nothing.

use super::Mem;

/// Range of addresses that a debug register watches.
#[derive(Debug, Clone, Copy)]
struct Area {
    first: u64,
    last: u64,
    /// True for R/W 01: only stores hit.
    stores_only: bool,
}

/// The enabled data breakpoints, and the DR6 bits of the breakpoints that the current instruction has hit.
#[derive(Debug, Default)]
pub(super) struct DataBreakpoints {
    areas: [Option<Area>; 4],
    hits: u64,
}

impl Mem {
    /// Copies the data breakpoints from the debug registers.
    pub(crate) fn set_watch(&mut self, dr: &[u64; 4], dr7: u64) {
        for (n, &address) in dr.iter().enumerate() {
            let enabled = dr7 >> (2 * n) & 3 != 0;
            let kind = dr7 >> (16 + 4 * n) & 3;
            let size = [1, 2, 8, 4][(dr7 >> (18 + 4 * n) & 3) as usize];
            // R/W 10 means I/O ports. The CPU does not model I/O breakpoints, so they never hit.
            self.watch.areas[n] = (enabled && kind & 1 != 0).then(|| {
                let first = address & !(size - 1);
                Area { first, last: first + (size - 1), stores_only: kind == 1 }
            });
        }
        self.watch.hits = 0;
        let any = self.watch.areas.iter().any(Option::is_some);
        self.tlb.bypass(any);
    }
    /// Records the data breakpoints that an access hits.
    #[inline]
    pub(super) fn note_access(&mut self, va: u64, size: u64, store: bool) {
        if !self.tlb.bypassed() {
            return;
        }
        let last = va.wrapping_add(size - 1);
        for (n, area) in self.watch.areas.iter().enumerate() {
            if let Some(a) = area
                && (store || !a.stores_only)
                && va <= a.last
                && last >= a.first
            {
                self.watch.hits |= 1 << n;
            }
        }
    }
    /// Returns the DR6 bits of the data breakpoints hit since the last call.
    pub(crate) fn take_watch_hits(&mut self) -> u64 {
        std::mem::take(&mut self.watch.hits)
    }
}

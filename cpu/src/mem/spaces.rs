//! Address spaces whose TLB entries are kept while the guest is in others. An address space is named by its root, the
//! physical address of its highest page table.

use super::tlb::SPACES;

/// Root of a place that no address space has. Roots are addresses of pages.
const NONE: u64 = u64::MAX;

/// Places of address spaces in the TLB.
#[derive(Debug)]
pub(super) struct Spaces {
    roots: [u64; SPACES],
    /// For each place, the value of `clock` when the guest last entered it.
    entered: [u64; SPACES],
    clock: u64,
}

impl Default for Spaces {
    fn default() -> Spaces {
        Spaces { roots: [NONE; SPACES], entered: [0; SPACES], clock: 0 }
    }
}

impl Spaces {
    /// Returns the place of the address space that the guest enters, and true if it was there before. An address space
    /// without a place takes that of the one that the guest has not entered for the longest time.
    pub(super) fn enter(&mut self, root: u64) -> (usize, bool) {
        self.clock += 1;
        let known = self.roots.iter().position(|&there| there == root);
        let oldest = || (0..SPACES).min_by_key(|&place| self.entered[place]).unwrap_or(0);
        let place = known.unwrap_or_else(oldest);
        (self.roots[place], self.entered[place]) = (root, self.clock);
        (place, known.is_some())
    }
}

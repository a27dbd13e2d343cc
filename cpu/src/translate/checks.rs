//! Numbers of the checks by which translated code sees that an edge (an executed jump) is recorded already.
//!
//! Code that other code of its page leads to, or that a call usually leads to, checks one byte for each edge
//! ([`Edges::known`](crate::core::edges::Edges::known)). All translations with a jump from one instruction to another
//! use the same number, so a trace can check the edges of its blocks.

use std::collections::BTreeMap;

use crate::core::edges::CHECKS;
use crate::edges;

/// Numbers of all checks. The first is 1.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// Numbers of checks, by number of the edge.
    numbers: BTreeMap<u64, u32>,
    count: u32,
}

impl Checks {
    /// Forgets all checks.
    pub(super) fn clear(&mut self) {
        *self = Checks::default();
    }
    /// True if there is no check.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Number of checks, plus one.
    pub(super) fn used(&self) -> usize {
        self.count as usize + 1
    }
    /// True if there is room for `more` checks.
    pub(super) fn has_room(&self, more: usize) -> bool {
        self.used() + more <= CHECKS
    }
    /// Returns the number of the check of one edge, from the location of a branch to that of the next instruction.
    pub(super) fn of_edge(&mut self, from: u64, to: u64) -> u32 {
        *self.numbers.entry(edges::number(from, to)).or_insert_with(|| {
            self.count += 1;
            self.count
        })
    }
    /// Returns the number of a new check, which stands for several edges.
    pub(super) fn of_trace(&mut self) -> u32 {
        self.count += 1;
        self.count
    }
}

//! How much was run.

use serde::Serialize;

use crate::run::{Cost, Merged, Totals};

/// How much was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Explored {
    /// Branches.
    pub branches: u64,
    /// Branches from the root moment: each heads a subtree.
    pub subtrees: u64,
    /// How many branches had an epilogue with checks.
    pub checked: u64,
    /// How many could not be run to their end.
    pub broken: u64,
    /// Time, in nanoseconds of vtime.
    pub vtime_ns: u64,
    /// CPU time and instructions.
    pub cost: Cost,
    /// Instructions that the host executed.
    pub executed: u64,
    /// Faults that were done.
    pub faults: u64,
    /// Times that a disk lost unflushed writes with its machine's power.
    pub losses: u64,
    /// Bytes of logs.
    pub log_bytes: u64,
}

impl Explored {
    pub(super) fn of(merged: &Merged) -> Explored {
        let Totals { cost, executed, vtime_ns, checked, faults, losses, log_bytes, broken, .. } =
            *merged.totals();
        let (branches, subtrees) = (merged.branches(), merged.subtrees().len() as u64);
        Explored { branches, subtrees, checked, broken, vtime_ns, cost, executed, faults, losses, log_bytes }
    }
}

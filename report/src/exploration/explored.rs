//! Size of an exploration.

use serde::Serialize;

use everett_explorer::run::{Cost, FinalPhases, Merged, Totals};

/// Size of an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Explored {
    /// Number of branches.
    pub branches: u64,
    /// Number of branches that start at the root moment. Each heads a subtree.
    pub subtrees: u64,
    /// Number of branches that were followed by checks.
    pub checked: u64,
    /// Number of branches that could not be run to their end.
    pub broken: u64,
    /// Virtual time, in nanoseconds.
    pub vtime_ns: u64,
    /// CPU time and instructions.
    pub cost: Cost,
    /// Part of `cost` that final phases took.
    pub final_phases: FinalPhases,
    /// Number of instructions that the host actually executed. It is higher than in `cost` if parts were run again, and
    /// lower if parts were stored.
    pub executed: u64,
    /// Number of faults that were applied.
    pub faults: u64,
    /// Number of times that a disk lost unflushed writes when its machine lost power.
    pub losses: u64,
    /// Size of all logs, in bytes.
    pub log_bytes: u64,
}

impl Explored {
    pub(super) fn of(merged: &Merged) -> Explored {
        let Totals {
            cost, final_phases, executed, vtime_ns, checked, faults, losses, log_bytes, broken, ..
        } = *merged.totals();
        let (branches, subtrees) = (merged.branches(), merged.subtrees().len() as u64);
        Explored {
            branches,
            subtrees,
            checked,
            broken,
            vtime_ns,
            cost,
            final_phases,
            executed,
            faults,
            losses,
            log_bytes,
        }
    }
}

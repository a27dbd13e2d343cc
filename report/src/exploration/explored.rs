//! Size of an exploration.

use serde::Serialize;

use everett_explorer::run::{Cost, FinalPhases, Merged, Totals};

/// Size of an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Explored {
    /// Number of branches.
    pub branches: u64,
    /// Number of branches that start at the root moment. Each begins a subtree.
    pub subtrees: u64,
    /// Number of branches at whose end Everett ran the checks.
    pub checked: u64,
    /// Number of branches that did not run to their end.
    pub broken: u64,
    /// Explored vtime, in nanoseconds.
    pub vtime_ns: u64,
    /// CPU time and number of instructions.
    pub cost: Cost,
    /// Part of `cost` that final phases took. A final phase is what follows a branch with checks: waiting until the
    /// world is at rest, and the checks.
    pub final_phases: FinalPhases,
    /// Number of instructions that the engine executed. It exceeds the number in `cost` if parts of timelines were
    /// executed again, and is lower if parts were taken from stored moments.
    pub executed: u64,
    /// Number of applied faults.
    pub faults: u64,
    /// Number of power losses in which a disk lost unflushed writes.
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

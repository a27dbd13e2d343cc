//! Costs of branches, and their totals.

use serde::Serialize;

use super::super::final_phase::FinalPhase;
use super::super::limits::HITS_MAX;
use super::super::merge_input::MergeInput;
use super::super::record::{HistoryCount, Record};

/// Cost of one or more branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Cost {
    /// CPU time of the host, in nanoseconds. The CPU time differs between runs.
    pub cpu_ns: u64,
    /// Retired guest instructions.
    pub instructions: u64,
}

/// Cost of the final phases of all branches that have one. A final phase is the part of a timeline after the branch's
/// end: the world comes to rest, and then the checks run. The phase may end before the checks are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct FinalPhases {
    /// Number of branches with a final phase of known cost.
    pub branches: u64,
    /// Number of branches that ran checks, but for which the cost of the final phase is unknown. The records (stored
    /// results) of these branches have an older format, which lacks this cost.
    pub unknown: u64,
    /// Sum over all branches with a final phase of known cost.
    pub sum: FinalPhase,
    /// Branch whose checks took the most vtime, or the first of several. `None` if no branch has a final phase of known
    /// cost.
    pub longest: Option<LongestFinal>,
}

/// Branch whose checks took the most vtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LongestFinal {
    /// Number of the branch.
    pub branch: u64,
    /// Cost of the branch's final phase.
    pub final_phase: FinalPhase,
}

impl FinalPhases {
    fn add(&mut self, record: &Record) {
        let Some(final_phase) = record.final_phase else {
            add(&mut self.unknown, record.checked.into());
            return;
        };
        add(&mut self.branches, 1);
        self.sum.add(&final_phase);
        let most_ns = self.longest.map(|longest| longest.final_phase.checks.vtime_ns);
        if most_ns.is_none_or(|most_ns| final_phase.checks.vtime_ns > most_ns) {
            self.longest = Some(LongestFinal { branch: record.choice, final_phase });
        }
    }
}

/// Totals over all branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    /// Cost of all branches.
    pub cost: Cost,
    /// Cost of all final phases, which is included in the cost of the branches.
    pub final_phases: FinalPhases,
    /// Number of guest instructions that Everett executed for the branches. If Everett ran a part of a branch again,
    /// the part counts again. Parts whose results were already stored do not count.
    pub executed: u64,
    /// Total length of the branches, in nanoseconds of vtime.
    pub vtime_ns: u64,
    /// Number of branches after which the checks ran.
    pub checked: u64,
    /// Number of faults that were applied.
    pub faults: u64,
    /// Number of times that a disk lost unflushed writes in a power loss.
    pub losses: u64,
    /// Number of branches that reached the horizon, i.e. the maximum length of a timeline.
    pub whole: u64,
    /// Maximum number of branches on one path from the root moment.
    pub depth: u64,
    /// Number of branches that have an operation history.
    pub histories: u64,
    /// Sums of the counts of all operation histories.
    pub history: HistoryCount,
    /// Number of branches for which it is unknown whether the operation history is correct, because its check exceeded
    /// the budget.
    pub histories_unknown: u64,
    /// Total size of the branches' logs, in bytes.
    pub log_bytes: u64,
    /// Number of branches whose log was cut.
    pub logs_cut: u64,
    /// Number of branches that reached more coverage points than the record of a branch can hold.
    pub deltas_full: u64,
    /// Number of branches with the maximum number of hits (recorded violations). These branches may have had more hits.
    pub hits_full: u64,
    /// Number of events that named a node that the world lacks.
    pub strange: u64,
    /// Number of branches that the host could not run to their end.
    pub broken: u64,
}

impl Cost {
    /// Returns the CPU time of all branches, in nanoseconds.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns
    }

    /// Returns the number of guest instructions of all branches.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    pub(super) fn add(&mut self, record: &Record) {
        add(&mut self.cpu_ns, record.cpu_ns);
        add(&mut self.instructions, record.instructions);
    }
}

impl Totals {
    pub(super) fn add(&mut self, input: &MergeInput) {
        let (record, numbers) = (&input.record, &input.numbers);
        self.cost.add(record);
        self.final_phases.add(record);
        add(&mut self.executed, record.executed);
        add(&mut self.vtime_ns, record.vtime_ns());
        add(&mut self.checked, record.checked.into());
        add(&mut self.faults, record.faults);
        add(&mut self.losses, record.losses);
        add(&mut self.whole, record.is_whole().into());
        self.depth = self.depth.max(record.path.forks().len() as u64);
        add(&mut self.log_bytes, record.log_bytes);
        add(&mut self.logs_cut, record.log_cut.into());
        add(&mut self.deltas_full, (numbers.overflow() > 0).into());
        add(&mut self.hits_full, (record.hits.len() >= HITS_MAX).into());
        add(&mut self.strange, numbers.strange());
        add(&mut self.broken, record.broken.is_some().into());
        if let Some(history) = &record.history {
            let HistoryCount { operations, acknowledged, failed, problems, unknown } = &mut self.history;
            add(&mut self.histories, 1);
            add(operations, history.operations);
            add(acknowledged, history.acknowledged);
            add(failed, history.failed);
            add(problems, history.problems);
            add(unknown, history.unknown);
            add(&mut self.histories_unknown, (history.unknown > 0).into());
        }
    }
}

/// Adds with saturation, because numbers from files are untrusted.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

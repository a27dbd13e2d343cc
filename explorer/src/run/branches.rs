//! Short summary of each branch (times, costs, faults, findings), for displays of the whole tree.
//!
//! The full records of all branches do not fit in memory. The summary of a branch takes about a hundred bytes.

use super::fault_kinds::FaultKinds;
use super::final_phase::FinalPhase;
use super::merge_input::MergeInput;
use super::merged::Merged;
use crate::coverage::Dictionary;
use crate::search::Standing;

/// Summaries of all merged branches, in the order in which the explorer chose the branches.
#[derive(Debug, Clone, Default)]
pub struct Branches {
    /// Summary of each branch.
    pub all: Vec<Branch>,
    /// Kinds of faults. Bit i of [`Branch::kinds`] stands for kind i.
    pub kinds: FaultKinds,
}

/// Summary of one branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Number of the branch that this branch extends. `None` if it starts at the root moment.
    pub from: Option<u64>,
    /// Number of the branch among the branches that start at the same moment, from 1.
    pub child: u64,
    /// Vtime at which the branch begins, in nanoseconds.
    pub begin_ns: u64,
    /// Vtime at which the branch ends, in nanoseconds.
    pub end_ns: u64,
    /// CPU time that the host spent on the branch, in nanoseconds.
    pub cpu_ns: u64,
    /// Cost of the branch, in instructions.
    pub instructions: u64,
    /// Cost of the final phase, if checks ran after the branch. The branch's cost includes it.
    pub final_phase: Option<FinalPhase>,
    /// Number of faults that were applied.
    pub faults: u64,
    /// Kinds of faults that began on the branch. Bit i is set for the i-th name of [`Branches::kinds`].
    pub kinds: u32,
    /// Number of messages that arrived on the branch.
    pub messages: u64,
    /// Number of coverage points that this branch was the first to reach.
    pub new_points: u64,
    /// True if other branches can start at the end of this branch.
    pub open: bool,
    /// True if the checks ran after the branch.
    pub checked: bool,
    /// True if the host could not run the branch to its end.
    pub broken: bool,
    /// Ids of the findings that the branch shows.
    pub findings: Vec<u32>,
}

impl Branches {
    /// Merges the record of a branch into `merged`, the results of the exploration, and adds the branch's summary.
    pub(super) fn merge(
        &mut self,
        merged: &mut Merged,
        dictionary: &Dictionary,
        input: MergeInput,
    ) -> Result<(), super::Stray> {
        let record = &input.record;
        let begin = record.path.forks().last().copied();
        let mut branch = Branch {
            from: record.from,
            child: begin.map_or(0, |fork| fork.child),
            begin_ns: begin.map_or(record.end_ns, |fork| fork.vtime_ns),
            end_ns: record.end_ns,
            cpu_ns: record.cpu_ns,
            instructions: record.instructions,
            final_phase: record.final_phase,
            faults: record.faults,
            kinds: self.kinds.of(dictionary, &input),
            messages: record.messages,
            new_points: 0,
            open: record.open_ns.is_some(),
            checked: record.checked,
            broken: record.broken.is_some(),
            findings: Vec::new(),
        };
        let hits: Vec<(String, String)> =
            record.hits.iter().map(|hit| (hit.property.clone(), hit.signature.clone())).collect();
        let Standing { reward, .. } = merged.merge_input(input)?;
        branch.new_points = reward;
        branch.findings = hits.into_iter().filter_map(|key| merged.finding_of(&key)).collect();
        self.all.push(branch);
        Ok(())
    }
}

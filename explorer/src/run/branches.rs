//! One line of figures for each branch: what a map of the tree shows.
//!
//! Records are too large to keep all of them in memory. This list keeps about a hundred bytes of each.

use super::fault_kinds::FaultKinds;
use super::final_phase::FinalPhase;
use super::merge_input::MergeInput;
use super::merged::Merged;
use crate::coverage::Dictionary;
use crate::search::Standing;

/// Figures of all merged branches, in the order of choices.
#[derive(Debug, Clone, Default)]
pub struct Branches {
    /// The branches.
    pub all: Vec<Branch>,
    /// Kinds of faults, by their bit in [`Branch::kinds`].
    pub kinds: FaultKinds,
}

/// Figures of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Choice of the branch that it extends; `None` if it starts at the root moment.
    pub from: Option<u64>,
    /// Number of its last fork.
    pub child: u64,
    /// Vtime at which it begins, in nanoseconds.
    pub begin_ns: u64,
    /// Vtime at which it ends, in nanoseconds.
    pub end_ns: u64,
    /// CPU time on the host, in nanoseconds.
    pub cpu_ns: u64,
    /// Cost in instructions.
    pub instructions: u64,
    /// Part of the cost that its final phase took, if checks followed it.
    pub final_phase: Option<FinalPhase>,
    /// Number of faults that were applied.
    pub faults: u64,
    /// Kinds of faults that began on it: bit i is set for the i-th name of [`Branches::kinds`].
    pub kinds: u32,
    /// Number of messages that arrived on it.
    pub messages: u64,
    /// Number of coverage points that no earlier branch reached.
    pub new_points: u64,
    /// True if branches can continue from its end.
    pub open: bool,
    /// True if checks followed it.
    pub checked: bool,
    /// True if it could not be run to its end.
    pub broken: bool,
    /// Ids of the findings that it shows.
    pub findings: Vec<u32>,
}

impl Branches {
    /// Merges a record into `merged`, and adds the branch's figures.
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

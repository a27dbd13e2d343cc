//! What branches cost, and their totals.

use serde::Serialize;

use super::super::brief::Brief;
use super::super::limits::HITS_MAX;
use super::super::record::{HistoryCount, Record};

/// What was paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Cost {
    /// The host's CPU time, in nanoseconds. Differs from run to run.
    pub cpu_ns: u64,
    /// Instructions.
    pub instructions: u64,
}

/// All branches added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    /// What they cost.
    pub cost: Cost,
    /// Instructions that the host executed for them.
    pub executed: u64,
    /// Their time, in nanoseconds of vtime.
    pub vtime_ns: u64,
    /// How many had an epilogue with checks.
    pub checked: u64,
    /// Faults that were done.
    pub faults: u64,
    /// Times that a disk lost unflushed writes with its machine's power.
    pub losses: u64,
    /// How many came to the horizon.
    pub whole: u64,
    /// The most branches that one timeline has, one after the other.
    pub depth: u64,
    /// How many have an operation history.
    pub histories: u64,
    /// Their histories.
    pub history: HistoryCount,
    /// How many have a history of which something is unknown.
    pub histories_unknown: u64,
    /// Bytes of their logs.
    pub log_bytes: u64,
    /// How many have a log that was cut off.
    pub logs_cut: u64,
    /// How many reached more than a branch can.
    pub deltas_full: u64,
    /// How many have as many hits as are kept.
    pub hits_full: u64,
    /// Events that named a node which is none.
    pub strange: u64,
    /// How many could not be run to their end.
    pub broken: u64,
}

impl Cost {
    /// In CPU time.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns
    }

    /// In instructions.
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
    pub(super) fn add(&mut self, brief: &Brief) {
        let (record, numbers) = (&brief.record, &brief.numbers);
        self.cost.add(record);
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

/// Numbers of files are untrusted, and sums of them stay numbers.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

//! The result of a branch in the form that is merged into the results of the exploration: coverage points are numbers,
//! and a digest replaces the parts that are only compared.

use super::exact::exact;
use super::record::{Record, RecordProblem};
use crate::coverage::{Delta, Dictionary, Numbers};
use crate::search::Choice;

/// Parts of a record (the stored result of a branch) that are merged: all parts except the fields `trail` and
/// `marks`, and the texts of coverage points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeInput {
    /// The record without the fields `delta`, `trail` and `marks`.
    pub(super) record: Record,
    /// Numbers of the points that the branch reached.
    pub(super) numbers: Numbers,
    /// Digest of the record's exact parts, which must be equal whenever the same exploration runs this branch again.
    pub(super) exact: blake3::Hash,
}

impl MergeInput {
    /// Cuts a record to its bounds and converts it. Points without a number in the dictionary get one.
    ///
    /// # Errors
    /// Returns an error if the record is invalid, or if it lists a point under another point's id.
    pub fn new(mut record: Record, dictionary: &Dictionary) -> Result<MergeInput, RecordProblem> {
        record.bound();
        MergeInput::of(&record, dictionary)
    }

    /// Converts a record that is within its bounds.
    pub(super) fn of(record: &Record, dictionary: &Dictionary) -> Result<MergeInput, RecordProblem> {
        record.check()?;
        let numbers = dictionary.number(&record.delta).map_err(|wrong| RecordProblem::Id(wrong.0))?;
        Ok(MergeInput { record: record.without_bulk(), numbers, exact: exact(record) })
    }

    /// Returns the record without the fields `delta`, `trail` and `marks`.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// True if the record is of the branch that this choice names, i.e. if number, parent and path are equal.
    #[must_use]
    pub fn is_of(&self, choice: &Choice) -> bool {
        self.record.is_of(choice)
    }
}

impl Record {
    fn without_bulk(&self) -> Record {
        let Record { choice, from, path, open_ns, end_ns, instructions, executed, cpu_ns, checked, .. } =
            self;
        let Record { faults, losses, messages, hits, sometimes, commands, history, .. } = self;
        Record {
            choice: *choice,
            from: *from,
            path: path.clone(),
            open_ns: *open_ns,
            end_ns: *end_ns,
            instructions: *instructions,
            final_phase: self.final_phase,
            executed: *executed,
            cpu_ns: *cpu_ns,
            trail: String::new(),
            marks: Vec::new(),
            checked: *checked,
            faults: *faults,
            losses: *losses,
            messages: *messages,
            delta: Delta::default(),
            hits: hits.clone(),
            sometimes: sometimes.clone(),
            commands: commands.clone(),
            history: *history,
            log_bytes: self.log_bytes,
            log_cut: self.log_cut,
            broken: self.broken.clone(),
        }
    }
}

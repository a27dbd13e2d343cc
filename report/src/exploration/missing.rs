//! Data that a report lacks because of a bound or a failure.

use serde::Serialize;

use everett_explorer::run::{Merged, Totals};

/// Counts of missing data, by cause. Normally all counts are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Number of branches whose stored results are not in the report, because the result of an earlier branch is
    /// missing.
    pub waiting: u64,
    /// Number of branches that did not run to their end.
    pub broken: u64,
    /// Number of branches whose logs were cut.
    pub logs_cut: u64,
    /// Number of branches that reached more coverage points than a record (stored result of a branch) can hold.
    pub deltas_full: u64,
    /// Number of times that a branch reached a new coverage point while the list of points was full.
    pub points: u64,
    /// Number of branches with the maximum number of hits, i.e. violations of properties. They may have had more.
    pub hits_full: u64,
    /// Number of hits that were dropped because the list of findings was full and did not contain the hit's finding.
    pub findings: u64,
    /// Number of times that a branch fulfilled a `sometimes` property for which the list of fulfilled properties had no
    /// room.
    pub sometimes: u64,
    /// Number of events of nodes that the world does not have.
    pub strange: u64,
    /// Number of unreadable lines of operation histories.
    pub history_problems: u64,
    /// True if the record of a branch could not be merged into the results. Later records are then not merged either.
    /// Only a defect of Everett causes this.
    pub stray: bool,
}

impl Missing {
    pub(super) fn of(merged: &Merged, waiting: u64) -> Missing {
        let Totals { broken, logs_cut, deltas_full, hits_full, strange, history, .. } = *merged.totals();
        Missing {
            waiting,
            broken,
            logs_cut,
            deltas_full,
            points: merged.coverage().overflow(),
            hits_full,
            findings: merged.findings_overflow(),
            sometimes: merged.sometimes_overflow(),
            strange,
            history_problems: history.problems,
            stray: merged.stray().is_some(),
        }
    }

    /// Returns a line for each cause whose count is not 0.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let Missing { waiting, broken, logs_cut, deltas_full, points, hits_full, .. } = *self;
        let Missing { findings, sometimes, strange, history_problems, stray, .. } = *self;
        let numbers = [
            (
                waiting,
                "recorded branches that are not part of the results yet, because an earlier branch is missing",
            ),
            (broken, "branches that could not be run to their end"),
            (logs_cut, "branches whose logs were cut off, so that their later lines were not judged"),
            (deltas_full, "branches that reached more points than can be recorded for one"),
            (
                points,
                "times that a point was reached for which there was no room, so that numbers of points are lower \
                 bounds",
            ),
            (hits_full, "branches with the maximum number of hits, which may have had more"),
            (findings, "hits of findings for which there was no room"),
            (sometimes, "times that a `sometimes` property was seen for which there was no room"),
            (strange, "events of nodes that the world does not have"),
            (
                history_problems,
                "lines of operation histories that could not be read, so that operations may be missing",
            ),
        ];
        let mut lines: Vec<String> = numbers
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{what} ({})", super::figures::count(number)))
            .collect();
        if stray {
            lines.push("a record could not be merged, nor any after it: a defect of Everett".to_owned());
        }
        lines
    }
}

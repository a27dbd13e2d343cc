//! Data that a report lacks because of a bound or a failure.

use serde::Serialize;

use everett_explorer::run::{Merged, Totals};

/// Counts of missing data, by cause. Normally all are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Branches that are recorded but not merged, because an earlier one is missing.
    pub waiting: u64,
    /// Branches that could not be run to their end.
    pub broken: u64,
    /// Branches whose logs were cut off.
    pub logs_cut: u64,
    /// Branches that reached more points than can be recorded for one.
    pub deltas_full: u64,
    /// Times that a point was reached for which coverage had no room.
    pub points: u64,
    /// Branches with the maximum number of hits. They may have had more.
    pub hits_full: u64,
    /// Hits of findings for which there was no room.
    pub findings: u64,
    /// Times that a `sometimes` property was seen for which there was no room.
    pub sometimes: u64,
    /// Events of nodes that the world does not have.
    pub strange: u64,
    /// Lines of operation histories that could not be read.
    pub history_problems: u64,
    /// True if a record could not be merged, and therefore no record after it. This is a defect of Everett.
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

    /// Returns a line for each cause.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let Missing { waiting, broken, logs_cut, deltas_full, points, hits_full, .. } = *self;
        let Missing { findings, sometimes, strange, history_problems, stray, .. } = *self;
        let numbers = [
            (waiting, "branches that are recorded but not merged, because an earlier one is missing"),
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

//! What random priorities promise, operation histories, what is missing, and what to compare with.

use std::fmt::Write;

use super::super::Report;
use super::super::figures::{count, counted};
use crate::run::HistoryCount;

/// What random priorities promise; nothing if nodes have none.
pub(super) fn promise(report: &Report) -> String {
    match &report.promise {
        Some(promise) => format!("## Random priorities\n\nWhat they promise is a {promise}.\n"),
        None => String::new(),
    }
}

/// What clients asked for and were told; nothing if they did not say.
pub(super) fn histories(report: &Report) -> String {
    let histories = &report.histories;
    if histories.branches == 0 {
        return String::new();
    }
    let HistoryCount { operations, acknowledged, failed, unknown, .. } = histories.count;
    let open = operations.saturating_sub(acknowledged).saturating_sub(failed);
    let mut text = format!(
        "## Histories\n\n{} of {}: {} acknowledged, {} failed, {} of unknown outcome.\n",
        counted(operations, "operation", "operations"),
        counted(histories.branches, "branch", "branches"),
        count(acknowledged),
        count(failed),
        count(open),
    );
    if unknown > 0 {
        let _ = writeln!(
            text,
            "Of {} in {} it is unknown whether all is as it should be: the check took more than it may.",
            counted(unknown, "key", "keys"),
            counted(histories.branches_unknown, "branch", "branches"),
        );
    }
    text
}

/// What is missing; nothing if nothing is.
pub(super) fn missing(report: &Report) -> String {
    let lines = report.missing.lines();
    if lines.is_empty() {
        return String::new();
    }
    let mut text = "## Missing\n\nWhat this report cannot tell:\n\n".to_owned();
    for line in lines {
        let _ = writeln!(text, "* {line}");
    }
    text
}

/// What two explorations of one world have in common.
pub(super) fn exactly(report: &Report) -> String {
    format!(
        "## Digests\n\nThe same exploration has the same digests, with any number of workers, on any host.\n\n    all    {}\n    chain  {} \
         of {}\n",
        report.digest,
        report.chain,
        counted(report.explored.branches, "branch", "branches"),
    )
}

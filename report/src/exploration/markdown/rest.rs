//! Sections on random priorities, operation histories, missing data, and digests for comparison.

use std::fmt::Write;

use super::super::Report;
use super::super::figures::{count, counted};
use everett_explorer::run::HistoryCount;

/// Returns the section on the guarantee of strategy `pct` (random priorities), i.e. a lower bound on the probability of
/// finding a bug. Empty for other strategies.
pub(super) fn promise(report: &Report) -> String {
    match &report.promise {
        Some(promise) => {
            format!("## Random priorities\n\nThe guarantee of random priorities is {promise}.\n")
        }
        None => String::new(),
    }
}

/// Returns the section on operation histories. Empty if there are none.
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
            "{} in {} remained undecided: the check exceeded its budget.",
            counted(unknown, "key", "keys"),
            counted(histories.branches_unknown, "branch", "branches"),
        );
    }
    text
}

/// Returns the section on missing data. Empty if nothing is missing.
pub(super) fn missing(report: &Report) -> String {
    let lines = report.missing.lines();
    if lines.is_empty() {
        return String::new();
    }
    let mut text = "## Missing\n\nThis report does not include:\n\n".to_owned();
    for line in lines {
        let _ = writeln!(text, "* {line}");
    }
    text
}

/// Returns the section on digests. Equal explorations have equal digests.
pub(super) fn exactly(report: &Report) -> String {
    format!(
        "## Digests\n\nThe same exploration has the same digests, with any number of workers, on any host.\n\n    \
         all    {}\n    chain  {} of {}\n",
        report.digest,
        report.chain,
        counted(report.explored.branches, "branch", "branches"),
    )
}

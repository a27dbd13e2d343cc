//! Report as Markdown.
//!
//! - `coverage`: coverage and estimates
//! - `findings`: findings
//! - `gaps`: possible faults, orders and values that no branch showed
//! - `head`: the exploration and its size
//! - `rest`: guarantee of the strategy `pct` (random priorities), i.e. a lower bound on the probability of finding a
//!   bug; operation histories; missing data; digests
//!
//! Not here: the numbers, which come from the [`Report`].

mod coverage;
mod findings;
mod gaps;
mod head;
mod rest;

use super::Report;

/// Returns the whole report as Markdown.
pub(super) fn write(report: &Report) -> String {
    let sections = [
        head::write(report),
        findings::write(report),
        coverage::write(report),
        rest::promise(report),
        gaps::write(report),
        rest::histories(report),
        rest::missing(report),
        rest::exactly(report),
    ];
    let sections: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    sections.join("\n")
}

/// Returns the first `most` elements of a list, and the number of elements after them.
fn first<T>(all: &[T], most: usize) -> (&[T], u64) {
    let shown = all.get(..most).unwrap_or(all);
    (shown, (all.len() - shown.len()) as u64)
}

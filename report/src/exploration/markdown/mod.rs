//! Report as Markdown.
//!
//! - `head`: the exploration and its size; `findings`, `coverage`, `gaps`; `rest`: the guarantee of random priorities,
//!   histories, missing data and digests
//!
//! Not here: the numbers. All of them come from the [`Report`].

mod coverage;
mod findings;
mod gaps;
mod head;
mod rest;

use super::Report;

/// Returns the whole report.
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

/// Returns the first `most` elements of a list, and the number of the others.
fn first<T>(all: &[T], most: usize) -> (&[T], u64) {
    let shown = all.get(..most).unwrap_or(all);
    (shown, (all.len() - shown.len()) as u64)
}

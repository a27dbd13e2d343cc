//! A report as Markdown.
//!
//! - `head`: what was explored; `findings`, `coverage`, `gaps`; `rest`: what is promised, histories, and what is missing
//!
//! Not here: numbers. What is not in the [`Report`] is not told.

mod coverage;
mod findings;
mod gaps;
mod head;
mod rest;

use super::Report;

/// The whole report.
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

/// The first of a list, and how many more there are.
fn first<T>(all: &[T], most: usize) -> (&[T], u64) {
    let shown = all.get(..most).unwrap_or(all);
    (shown, (all.len() - shown.len()) as u64)
}

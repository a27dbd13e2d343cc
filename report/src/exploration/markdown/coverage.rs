//! Section on coverage: growth, and estimates of unreached points.

use std::fmt::Write;

use super::super::Report;
use super::super::figures::{count, percent};
use super::super::sparkline::sparkline;
use everett_explorer::coverage::Kind;

pub(super) fn write(report: &Report) -> String {
    let mut text = "## Coverage\n\n".to_owned();
    text += "| kind | points | growth | new in the last quarter | in one branch only | estimated unseen | chance that the next is new |\n";
    text += "|---|--:|---|--:|--:|--:|--:|\n";
    for covered in &report.coverage {
        let figures = &covered.figures;
        let growth = match figures.points {
            0 => String::new(),
            _ => sparkline(&covered.growth),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {growth} | {} | {} | {} | {} |",
            name(figures.kind).1,
            count(figures.points),
            count(figures.recent),
            count(figures.once),
            count(figures.more),
            figures.unseen_ppm.map_or("?".to_owned(), percent),
        );
    }
    let estimate =
        report.coverage.iter().map(|covered| covered.figures).find(|figures| figures.kind == Kind::State);
    match estimate.and_then(|states| Some((states, states.unseen_ppm?))) {
        Some((states, unseen_ppm)) => {
            let (one, many) = name(Kind::State);
            let (name, verb) = if states.more == 1 { (one, "is") } else { (many, "are") };
            let _ = write!(
                text,
                "\nAt least {} more {name} {verb} likely unseen (Chao).\n\
                 Of the {many} that branches reach next, {} are likely new (Good and Turing).\n",
                count(states.more),
                percent(unseen_ppm),
            );
        }
        None => text += "\nNo points were reached, so the unseen share cannot be estimated.\n",
    }
    if report.header.strategy.is_uniform() {
        return text;
    }
    text += "The strategy did not draw branches uniformly, so the estimates are adaptive: \
             they hold for this search only.\n";
    text
}

/// Returns the name of a kind of points in singular and plural.
fn name(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::State => ("state", "states"),
        Kind::Phase => ("phase", "phases"),
        Kind::Fault => ("fault in a phase", "faults in phases"),
        Kind::FaultPair => ("pair of faults in a phase", "pairs of faults in phases"),
        Kind::Order => ("order of events", "orders of events"),
        Kind::Value => ("declared value", "declared values"),
        Kind::Assertion => ("outcome of an assertion", "outcomes of assertions"),
        Kind::Guidance => ("value of guidance", "values of guidance"),
        Kind::Edge => ("edge of a program", "edges of programs"),
    }
}

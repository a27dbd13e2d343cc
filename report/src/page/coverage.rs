//! Section on coverage: growth, the matrix of faults and phases (a phase is the abstract state of one node), pairs of
//! events that occurred in only one order, functions that branches reached, and executed code.

use everett_explorer::coverage::Kind;
use maud::{Markup, html};

use super::reached_code;
use super::svg::{Scale, line};
use super::text::{code as code_text, count, counted, foreign, percent, plain};
use crate::data::{Code, CoverageData, Data, Growth};

/// Width of a growth curve, in pixels.
const WIDTH: f64 = 300.0;
/// Height of a growth curve, in pixels.
const HEIGHT: f64 = 90.0;
/// Maximum number of orders of events that are shown unfolded.
const ORDERS_SHOWN_MAX: usize = 12;
/// Maximum number of binaries that are shown.
const BINARIES_SHOWN_MAX: usize = 40;
/// Maximum number of functions of a binary that are shown.
const FUNCTIONS_SHOWN_MAX: usize = 60;

pub(super) fn section(data: &Data) -> Markup {
    let coverage = &data.coverage;
    html! {
        section #coverage aria-labelledby="coverage-title" {
            h2 #coverage-title { "Coverage" }
            @if data.summary.adaptive {
                p.dim { "The strategy prefers new ground, so the estimates hold for this search only." }
            }
            div.curves { @for growth in coverage.kinds.iter().filter(|growth| growth.figures.points > 0) { (curve(growth)) } }
            @if coverage.kinds.iter().all(|growth| growth.figures.points == 0) { p { "No point of coverage was reached." } }
            (matrix(coverage))
            (orders(coverage))
            @if !coverage.values.is_empty() {
                h3 { "Declared values that were never seen" }
                ul.inline { @for value in coverage.values.iter().take(100) { li { (code_text(value)) } } }
            }
            (reached_code::part(data))
            (executed(data.code.as_ref()))
        }
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::State => "States",
        Kind::Phase => "Phases of nodes",
        Kind::Fault => "Faults in phases",
        Kind::FaultPair => "Pairs of faults in phases",
        Kind::Order => "Orders of events",
        Kind::Value => "Declared values",
        Kind::Assertion => "Outcomes of assertions",
        Kind::Guidance => "Values of guidance",
        Kind::Edge => "Edges of programs",
    }
}

fn curve(growth: &Growth) -> Markup {
    let Growth { figures, samples } = growth;
    let last = samples.last().copied().unwrap_or((1, 1));
    let x = Scale::new((0.0, last.0 as f64), (0.0, WIDTH));
    let y = Scale::new((0.0, (figures.points + figures.more).max(1) as f64), (HEIGHT - 2.0, 8.0));
    let points = samples.iter().map(|(branches, points)| (x.at(*branches as f64), y.at(*points as f64)));
    let points: Vec<(f64, f64)> = [(0.0, HEIGHT - 2.0)].into_iter().chain(points).collect();
    let estimate = y.at((figures.points + figures.more) as f64);
    let unseen = figures.unseen_ppm.map_or("?".to_owned(), percent);
    let label = format!(
        "{}: {} after {}; at least {} more are likely.",
        name(figures.kind),
        count(figures.points),
        counted(last.0, "branch", "branches"),
        count(figures.more)
    );
    html! {
        figure {
            figcaption { strong { (name(figures.kind)) } " " (count(figures.points)) }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(label) {
                line.grid x1="0" y1=(HEIGHT - 2.0) x2=(WIDTH) y2=(HEIGHT - 2.0) {}
                @if figures.more > 0 { line.estimate x1="0" y1=(estimate) x2=(WIDTH) y2=(estimate) {} }
                path.growth d=(line(points)) {}
            }
            p.dim { "probability that the next point is new: " (unseen) " · unseen: at least " (count(figures.more)) " · first seen in the last quarter: " (count(figures.recent)) }
        }
    }
}

fn matrix(coverage: &CoverageData) -> Markup {
    let most = coverage.phases.iter().flat_map(|row| &row.cells).copied().max().unwrap_or(0);
    let level = |cell: u64| match cell {
        0 => 0,
        cell => 1 + (cell as f64).ln_1p() as u64 * 3 / ((most as f64).ln_1p() as u64).max(1),
    };
    html! {
        @if !coverage.phases.is_empty() && !coverage.faults.is_empty() {
            h3 #matrix { "Faults in phases" }
            p.dim {
                "Number of branches in which a node came into the phase, and in which a fault began while it was there. "
                strong { (count(coverage.empty_cells)) " empty cells" } " show what to explore next."
                @if !coverage.gaps_known { " The world file cannot be read, or has changed since, so the matrix lacks kinds of faults that never began." }
                @if coverage.phases_count > coverage.phases.len() as u64 { " The " (coverage.phases.len()) " most frequent of " (count(coverage.phases_count)) " phases are shown." }
            }
            div.scroll role="region" aria-label="Matrix of faults and phases" tabindex="0" {
                table.matrix {
                    thead { tr { th scope="col" { "Phase of the node" } th.number scope="col" { "Entered in" } @for fault in &coverage.faults { th.slant scope="col" { span { (foreign(fault)) } } } } }
                    tbody {
                        @for row in &coverage.phases {
                            tr {
                                th scope="row" title=(plain(&row.phase)) { span.phase { (foreign(&row.phase)) } }
                                td.number { (count(row.branches)) }
                                @for cell in &row.cells {
                                    @if *cell == 0 { td.empty { span.hidden { "never" } } }
                                    @else { td class={ "h" (level(*cell).min(4)) } { (count(*cell)) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn orders(coverage: &CoverageData) -> Markup {
    let (shown, folded) = coverage.one_way.split_at(coverage.one_way.len().min(ORDERS_SHOWN_MAX));
    let item = |pair: &crate::data::OneWay| {
        html! {
            li {
                (code_text(&pair.first)) " always before " (code_text(&pair.then))
                span.dim { " on " (if pair.across { "different nodes" } else { "one node" }) ", " (counted(pair.branches, "branch", "branches")) }
            }
        }
    };
    html! {
        @if !coverage.one_way.is_empty() {
            h3 #orders { "Pairs of events that were seen in one order only" }
            p.dim { (count(coverage.one_way_count)) " pairs. An order that was never seen may be impossible, or not yet tested." }
            ul.orders { @for pair in shown { (item(pair)) } }
            @if !folded.is_empty() {
                details { summary { (folded.len()) " more" } ul.orders { @for pair in folded { (item(pair)) } } }
            }
        }
    }
}

fn executed(code: Option<&Code>) -> Markup {
    html! {
        h3 #code { "Executed code" }
        @match code {
            None => { p.dim { "No edges of code were recorded for this report. " code { "everett replay RUN 1 --edges FILE" } " records them, and " code { "everett report RUN --html --edges FILE" } " shows them." } }
            Some(code) => {
                p.dim { (counted(code.edges, "edge", "edges")) " in " (counted(code.binaries_count, "binary", "binaries")) "." }
                div.scroll role="region" aria-label="Executed code" tabindex="0" {
                    table {
                        thead { tr { th scope="col" { "Binary" } th.number scope="col" { "Edges" } th.number scope="col" { "Places" } th scope="col" { "Nodes" } th scope="col" { "Functions" } } }
                        tbody {
                            @for binary in code.binaries.iter().take(BINARIES_SHOWN_MAX) {
                                tr {
                                    th scope="row" { (code_text(&binary.name)) }
                                    td.number { (count(binary.edges)) }
                                    td.number { (count(binary.places)) }
                                    td { (foreign(&binary.nodes.join(", "))) }
                                    td {
                                        @if binary.functions.is_empty() { span.dim { "no names" } }
                                        @else {
                                            details {
                                                summary { (counted(binary.functions_count, "function", "functions")) }
                                                ul.plain { @for function in binary.functions.iter().take(FUNCTIONS_SHOWN_MAX) { li { (code_text(&function.name)) " " span.dim { (count(function.edges)) } } } }
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
                @if code.binaries.len() > BINARIES_SHOWN_MAX { p.dim { (code.binaries.len() - BINARIES_SHOWN_MAX) " more binaries are in the data." } }
            }
        }
    }
}

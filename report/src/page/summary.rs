//! First screen of the report: what was explored, found and never reached, and how much that proves.

use crate::exploration::final_phases::percent;
use maud::{Markup, html};

use super::text::{count, counted, duration, foreign, plain};
use crate::data::{Data, Different, State};

/// Maximum number of findings, and of properties, on the first screen.
const ROWS_SHOWN_MAX: usize = 5;

pub(super) fn section(data: &Data) -> Markup {
    let s = &data.summary;
    html! {
        header #summary {
            p.kicker { "Everett · exploration of a world" }
            h1 { (foreign(&s.world)) }
            p.lead { (foreign(&s.verdict)) }
            p.sure { (s.sure) }
            @if !s.exact {
                p.note.unknown role="note" {
                    "Inexact: the engine " (foreign(&s.engine)) " was not proved exact on its host. Results may depend on \
                     the host."
                }
            }
            div.columns {
                section aria-labelledby="explored" {
                    h2 #explored { "Explored" }
                    (figures(data))
                }
                section aria-labelledby="found" {
                    h2 #found { "Found" }
                    (found(data))
                }
                section aria-labelledby="unreached" {
                    h2 #unreached { "Never reached" }
                    (never(data))
                }
            }
        }
    }
}

fn figures(data: &Data) -> Markup {
    let s = &data.summary;
    let host = s.host_ns.map(|ns| format!(" in {}", duration(ns))).unwrap_or_default();
    let rows = [
        (
            "Branches",
            format!("{}{host}", count(s.branches)),
            format!("of {}, {} with checks", counted(s.subtrees, "subtree", "subtrees"), count(s.checked)),
        ),
        ("Virtual time", duration(s.vtime_ns), format!("{:.1} s per second of CPU time", s.speed)),
        (
            "CPU time",
            duration(s.cpu_ns),
            format!("{:.0} branches per minute of CPU time", s.branches_per_cpu_min),
        ),
        ("Checks", finals(data), data.summary.final_phases_told.clone().unwrap_or_default()),
        ("Budget", budget(data), recorded(data)),
        ("Faults", count(s.faults), format!("in {} instructions", count(s.instructions))),
        (
            "World",
            counted(s.nodes.len() as u64, "node", "nodes"),
            format!("seed {}, strategy {}, engine {}", s.seed, plain(&s.strategy), plain(&s.engine)),
        ),
    ];
    html! {
        dl.figures {
            @for (name, value, more) in rows {
                div { dt { (name) } dd { strong { (value) } @if !more.is_empty() { span { (more) } } } }
            }
        }
        p.dim { "Ended: " (s.end) "." }
        @for Different { branch, why, .. } in s.recordings.iter().flat_map(|recordings| &recordings.different) {
            p.fail role="note" { "The replay of branch b" (branch) " differs from the exploration: " (foreign(why)) }
        }
    }
}

/// Describes the share of the instructions that final phases took. A final phase follows a branch: the faults end, the
/// world comes to rest, and the checks run.
fn finals(data: &Data) -> String {
    let finals = &data.summary.final_phases;
    match percent(finals.sum.instructions(), data.summary.instructions) {
        Some(share) if finals.branches > 0 => format!("{share:.0} % of the cost"),
        _ if finals.unknown > 0 => "cost not recorded".to_owned(),
        _ => "none".to_owned(),
    }
}

/// Describes the limits of the exploration, and how much of them was used.
fn budget(data: &Data) -> String {
    let s = &data.summary;
    let Some(budget) = s.budget else { return "not recorded".to_owned() };
    let mut parts = Vec::new();
    parts.extend(budget.host_ns.map(|ns| match s.host_ns {
        Some(used) => format!("{} of {}", duration(used.min(ns)), duration(ns)),
        None => duration(ns),
    }));
    parts.extend(
        budget
            .branches
            .map(|most| format!("{} of {}", count(s.branches), counted(most, "branch", "branches"))),
    );
    parts.extend(budget.until_found.then(|| "until the first finding".to_owned()));
    if parts.is_empty() { "none: it runs until it is stopped".to_owned() } else { parts.join("; ") }
}

/// Describes which timelines Everett replayed and recorded at the end of the exploration.
fn recorded(data: &Data) -> String {
    let Some(recordings) = &data.summary.recordings else { return String::new() };
    let findings = (recordings.recorded.len() + recordings.left_out.len()) as u64;
    let other = match recordings.branches.len() as u64 {
        0 => String::new(),
        n => format!(" and {}", counted(n, "other branch", "other branches")),
    };
    format!(
        "recorded: timelines of {} of {}{other}, in {} of {}",
        recordings.recorded.len(),
        counted(findings, "finding", "findings"),
        duration(recordings.host_ns),
        duration(recordings.budget_ns)
    )
}

fn found(data: &Data) -> Markup {
    html! {
        @if data.findings.is_empty() && data.gone.is_empty() {
            p.pass { span.glyph aria-hidden="true" { "✓" } "No property was violated." }
        }
        ol.found {
            @for finding in data.findings.iter().take(ROWS_SHOWN_MAX) {
                li {
                    a href={ "#finding-" (finding.id) } { (foreign(&finding.property)) }
                    @if let Some(status) = finding.status { (tag(status.word())) }
                    p { (foreign(&finding.story)) }
                    p.dim {
                        "in " (counted(finding.branches, "branch", "branches")) " of "
                        (counted(finding.subtrees, "subtree", "subtrees"))
                    }
                }
            }
        }
        @if data.findings.len() > ROWS_SHOWN_MAX {
            p { a href="#findings" { (data.findings.len() - ROWS_SHOWN_MAX) " more" } }
        }
        @if !data.gone.is_empty() {
            p { a href="#findability" { (counted(data.gone.len() as u64, "problem", "problems")) " of older runs not seen again" } }
        }
    }
}

/// Returns the coloured mark with the status of a finding, e.g. `new`.
pub(super) fn tag(word: &str) -> Markup {
    html! { span class={ "tag " (word) } { (word) } }
}

fn never(data: &Data) -> Markup {
    let unreached: Vec<_> = data.properties.iter().filter(|p| p.state == State::NeverReached).collect();
    let coverage = &data.coverage;
    let states = coverage.kinds.first().map(|states| states.figures);
    html! {
        ul.plain {
            @for property in unreached.iter().take(ROWS_SHOWN_MAX) {
                li { span.glyph.unknown aria-hidden="true" { "○" } (foreign(&property.name)) span.dim { " " (foreign(&property.why)) } }
            }
            @if unreached.len() > ROWS_SHOWN_MAX {
                li { a href="#properties" { (unreached.len() - ROWS_SHOWN_MAX) " more properties" } }
            }
            @if !coverage.phases.is_empty() && coverage.empty_cells > 0 {
                li { span.glyph.unknown aria-hidden="true" { "○" } a href="#matrix" { (counted(coverage.empty_cells, "pair", "pairs")) " of a fault and a phase" } }
            }
            @if coverage.one_way_count > 0 {
                li { span.glyph.unknown aria-hidden="true" { "○" } a href="#orders" { (counted(coverage.one_way_count, "pair", "pairs")) " of events in the other order" } }
            }
            @if let Some(states) = states {
                @if states.more > 0 {
                    li { span.glyph.unknown aria-hidden="true" { "○" } a href="#coverage" { "at least " (counted(states.more, "state", "states")) } " (Chao), after " (count(states.points)) }
                }
            }
        }
    }
}

//! The first screen: what was explored, found and never reached, and how sure one can be.

use maud::{Markup, html};

use super::text::{count, counted, duration, foreign, plain};
use crate::data::{Data, State};

/// Maximum number of findings and of properties on the first screen.
const SHOWN: usize = 5;

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
        ("Virtual time", duration(s.vtime_ns), format!("{:.1} s for each second of CPU", s.speed)),
        ("CPU time", duration(s.cpu_ns), format!("{:.0} branches a minute of CPU", s.branches_per_cpu_min)),
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
                div { dt { (name) } dd { strong { (value) } span { (more) } } }
            }
        }
        p.dim { "Ended: " (s.end) "." }
    }
}

fn found(data: &Data) -> Markup {
    html! {
        @if data.findings.is_empty() && data.gone.is_empty() {
            p.pass { span.glyph aria-hidden="true" { "✓" } "No property was violated." }
        }
        ol.found {
            @for finding in data.findings.iter().take(SHOWN) {
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
        @if data.findings.len() > SHOWN {
            p { a href="#findings" { (data.findings.len() - SHOWN) " more" } }
        }
        @if !data.gone.is_empty() {
            p { a href="#findability" { (counted(data.gone.len() as u64, "problem", "problems")) " of older runs not seen again" } }
        }
    }
}

/// Returns the mark of a status.
pub(super) fn tag(word: &str) -> Markup {
    html! { span class={ "tag " (word) } { (word) } }
}

fn never(data: &Data) -> Markup {
    let unreached: Vec<_> = data.properties.iter().filter(|p| p.state == State::NeverReached).collect();
    let coverage = &data.coverage;
    let states = coverage.kinds.first();
    html! {
        ul.plain {
            @for property in unreached.iter().take(SHOWN) {
                li { span.glyph.unknown aria-hidden="true" { "○" } (foreign(&property.name)) span.dim { " " (foreign(&property.why)) } }
            }
            @if unreached.len() > SHOWN {
                li { a href="#properties" { (unreached.len() - SHOWN) " more properties" } }
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

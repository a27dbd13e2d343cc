//! Table of properties.

use maud::{Markup, html};

use super::summary::tag;
use super::text::{count, foreign};
use crate::data::{Data, Property, State};

pub(super) fn section(data: &Data) -> Markup {
    let s = &data.summary;
    let all = (s.failed + s.never_reached + s.passed).max(1) as f64;
    let parts = [
        ("fail", "failed", s.failed),
        ("unknown", "never reached", s.never_reached),
        ("pass", "passed", s.passed),
    ];
    let mut x = 0.0;
    html! {
        section #properties aria-labelledby="properties-title" {
            h2 #properties-title { "Properties" }
            p.parts {
                @for (class, name, number) in parts {
                    span class=(class) { span.glyph aria-hidden="true" { (glyph(class)) } strong { (count(number)) } " " (name) }
                }
            }
            svg.bar viewBox="0 0 100 2" preserveAspectRatio="none" role="img" aria-label="Shares of properties that failed, were never reached, and passed" {
                @for (class, _, number) in parts {
                    @let width = number as f64 / all * 100.0;
                    rect class={ "fill-" (class) } x=(x) y="0" width=(width) height="2" {}
                    ({ x += width; "" })
                }
            }
            @let passed = data.properties.iter().position(is_plain).unwrap_or(data.properties.len());
            @let (first, folded) = data.properties.split_at(passed);
            @if !first.is_empty() { (table("Properties that failed, or were never reached, or changed", first)) }
            @if !folded.is_empty() {
                details open[first.is_empty()] { summary { (count(folded.len() as u64)) " passed" } (table("Properties that passed", folded)) }
            }
        }
    }
}

/// True if a property passed in this run and no older run shows a failure of it. The list of all properties is sorted,
/// and has these properties last.
fn is_plain(property: &Property) -> bool {
    property.state == State::Passed && property.status.is_none()
}

fn table(name: &str, properties: &[Property]) -> Markup {
    html! {
        div.scroll role="region" aria-label=(name) tabindex="0" {
            table {
                thead {
                    tr { th scope="col" { "Result" } th scope="col" { "Property" } th scope="col" { "Kind" } th scope="col" { "Since older runs" } th.number scope="col" { "Branches" } th scope="col" { "Example" } th scope="col" { "Counterexample" } }
                }
                tbody { @for property in properties { (row(property)) } }
            }
        }
    }
}

fn glyph(class: &str) -> &'static str {
    match class {
        "fail" => "✕",
        "unknown" => "○",
        _ => "✓",
    }
}

fn row(property: &Property) -> Markup {
    let (class, word) = match property.state {
        State::Failed => ("fail", "failed"),
        State::Passed => ("pass", "passed"),
        State::NeverReached => ("unknown", "never reached"),
    };
    let branch = |branch: Option<u64>| {
        html! {
            @if let Some(branch) = branch { a.branch href="#map" data-branch=(branch) { "b" (branch) } }
        }
    };
    html! {
        tr {
            td class=(class) { span.glyph aria-hidden="true" { (glyph(class)) } (word) }
            th scope="row" {
                (foreign(&property.name))
                @for id in property.findings.iter().take(5) { " " a href={ "#finding-" (id) } { "#" (id) } }
                @if !property.why.is_empty() { span.dim { " " (foreign(&property.why)) } }
            }
            td.dim { (property.kind) }
            td { @if let Some(status) = property.status { (tag(status.word())) } }
            td.number { @if property.branches > 0 { (count(property.branches)) } }
            td { (branch(property.example)) }
            td { (branch(property.counterexample)) }
        }
    }
}

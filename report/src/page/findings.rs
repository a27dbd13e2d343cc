//! Section on findings. For each finding it has a description in words, faults, diagrams, logs and commands.

use maud::{Markup, html};

use super::summary::tag;
use super::text::{code, count, counted, cpu, duration, foreign, seconds};
use super::{causality, history, logs, reached_code};
use crate::data::{Data, Finding};
use crate::findability::Outlook;
use crate::scene::{Bar, Scene};

/// Number of findings whose details are unfolded when the page loads.
const OPEN: usize = 1;

pub(super) fn section(data: &Data) -> Markup {
    html! {
        section #findings aria-labelledby="findings-title" {
            h2 #findings-title { "Findings" }
            @if data.findings.is_empty() {
                p { "Nothing was found. " (data.summary.sure) }
            }
            @for (place, finding) in data.findings.iter().enumerate() {
                (article(data, finding, place < OPEN))
            }
        }
    }
}

fn article(data: &Data, finding: &Finding, open: bool) -> Markup {
    let id = finding.id;
    html! {
        details.finding id={ "finding-" (id) } open[open] {
            summary {
                h3 {
                    span.id { (id) }
                    (foreign(&finding.property))
                    @if let Some(status) = finding.status { (tag(status.word())) }
                }
                span.dim { "in " (counted(finding.branches, "branch", "branches")) ", first in b" (finding.branch) }
            }
            p.story { (foreign(&finding.story)) }
            @if !finding.facts.is_empty() {
                ul.facts { @for fact in &finding.facts { li { (foreign(fact)) } } }
            }
            (faults(finding))
            (causality::part(finding))
            (reached_code::of_finding(finding.code.as_ref()))
            @if let Some(scene) = &finding.scene { (diagrams(finding, scene)) }
            h4 { "Next steps" }
            (commands(&finding.commands))
            (figures(data, finding))
        }
    }
}

/// Returns commands, each with a button that copies it.
pub(super) fn commands(commands: &[String]) -> Markup {
    html! {
        ul.commands {
            @for command in commands {
                li { code { (everett_input::text::one_line(command)) } button type="button" class="copy" { "Copy" } }
            }
        }
    }
}

fn faults(finding: &Finding) -> Markup {
    let (title, bars): (Markup, &[Bar]) = match &finding.plan {
        Some(plan) => {
            let title = html! {
                @if plan.minimal { "The fewest faults that show the finding" } @else { "Faults that show the finding (not minimal)" }
                span.dim { " from " (code(&plan.file)) }
            };
            (title, &plan.faults)
        }
        None => {
            (html! { "Faults before the finding" }, finding.scene.as_ref().map_or(&[], |scene| &scene.faults))
        }
    };
    html! {
        @if !bars.is_empty() {
            h4 { (title) }
            ol.faults {
                @for bar in bars {
                    li { span.time { (seconds(bar.begin_ns)) } span.kind { (foreign(&bar.kind)) } (foreign(&bar.told())) details.raw { summary { "plan" } (code(&bar.line)) } }
                }
            }
        }
    }
}

fn diagrams(finding: &Finding, scene: &Scene) -> Markup {
    let id = finding.id;
    html! {
        @if !scene.messages.is_empty() {
            h4 { "Messages and faults" span.dim { " " (extent(scene, scene.messages.len(), "message", "messages")) } }
            div.spacetime data-finding=(id) {
                p.noscript.dim { "The diagram needs the page's script. The commands below show the messages." }
            }
        }
        @if !scene.operations.is_empty() {
            h4 { "Operations of clients" span.dim { " those before the finding" } }
            (history::chart(finding, scene))
        }
        @if !scene.events.is_empty() {
            h4 { "Logs by node" span.dim { " " (extent(scene, scene.events.len(), "line", "lines")) } }
            (logs::table(finding, scene))
        }
    }
}

/// Describes which part of the timeline a list of events or messages shows. `number` is the length of the list, and
/// `scene` (the recorded data around a finding) contains the list.
fn extent(scene: &Scene, number: usize, one: &str, many: &str) -> String {
    let number = counted(number as u64, one, many);
    match (scene.is_recorded, scene.left_out) {
        (true, 0) => format!("{number}: the whole timeline"),
        (true, _) => format!("the last {number} of a long timeline"),
        (false, _) => format!("the last {number} before the finding"),
    }
}

fn figures(data: &Data, finding: &Finding) -> Markup {
    let adaptive = data.summary.adaptive;
    let Outlook { mean, mean_low, mean_high, .. } = finding.cpu;
    html! {
        dl.small {
            div { dt { "First hit" } dd { (seconds(finding.vtime_ns)) " s of vtime, after " (duration(finding.first_cpu_ns)) " of CPU and " (count(finding.first_instructions)) " instructions" } }
            div { dt { "Path" } dd { (code(&finding.path)) } }
            @if let Some(mean) = mean {
                div {
                    dt { "Mean time to a hit" @if adaptive { " (adaptive)" } }
                    dd {
                        (cpu(mean)) " of CPU"
                        @if let (Some(low), Some(high)) = (mean_low, mean_high) { ", between " (cpu(low)) " and " (cpu(high)) }
                        ". " a href={ "#findability-" (finding.id) } { "When is it gone?" }
                    }
                }
            }
            div { dt { "Signature" } dd { (code(&finding.signature)) } }
        }
    }
}

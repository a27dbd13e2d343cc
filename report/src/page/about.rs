//! Section on the origin of the report, on missing data, and on digests that identify its results.

use maud::{Markup, html};

use super::findings::commands;
use super::text::{code, foreign};
use crate::data::Data;

pub(super) fn section(data: &Data) -> Markup {
    let s = &data.summary;
    let run = crate::exploration::word(&s.run);
    html! {
        section #about aria-labelledby="about-title" {
            h2 #about-title { "About" }
            @if !data.missing.is_empty() {
                h3 { "This report does not include" }
                ul { @for line in &data.missing { li { (foreign(line)) } } }
            }
            dl.small {
                div { dt { "World file" } dd { (code(&s.world_file)) } }
                div { dt { "Nodes" } dd { (foreign(&s.nodes.join(", "))) } }
                div { dt { "Versions" } dd { "Everett " (foreign(&s.everett)) ", machine " (foreign(&s.machine)) } }
                div { dt { "Engine" } dd { (foreign(&s.engine)) @if s.exact { ", exact" } @else { ", inexact" } } }
                div { dt { "Image" } dd { (code(&s.image)) } }
                div { dt { "Identity" } dd { (code(&s.identity)) } }
                div { dt { "Digest" } dd { (code(&s.digest)) " of all results: the same exploration has the same digest on every host" } }
                div { dt { "Chain" } dd { (code(&s.chain)) } }
            }
            (commands(&[format!("everett report {run} --html"), format!("everett report {run} --all"), format!("everett report {run} --data")]))
        }
    }
}

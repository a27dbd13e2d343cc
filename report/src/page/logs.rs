//! Logs of all nodes side by side, on one time axis.

use maud::{Markup, html};

use super::text::{foreign, plain, seconds};
use crate::data::Finding;
use crate::scene::{Event, Scene};

/// Maximum number of lines in a table. The table shows the last lines before the finding.
const LINES_SHOWN_MAX: usize = 600;

/// Row of the table.
enum Row<'s> {
    Event(usize, &'s Event),
    Fault(u64, String),
    Found,
}

pub(super) fn table(finding: &Finding, scene: &Scene) -> Markup {
    let mut rows: Vec<(u64, Row<'_>)> = Vec::new();
    let events = scene.events.iter().enumerate().filter(|(_, event)| event.unit != "fault");
    rows.extend(events.map(|(place, event)| (event.at_ns, Row::Event(place, event))));
    rows.extend(scene.faults.iter().map(|bar| (bar.begin_ns, Row::Fault(bar.begin_ns, bar.words.clone()))));
    rows.extend(scene.faults.iter().filter_map(|bar| {
        let end = bar.end_ns.filter(|end| *end <= scene.found_ns)?;
        Some((end, Row::Fault(end, format!("end of: {}", bar.words))))
    }));
    rows.push((scene.found_ns, Row::Found));
    rows.sort_by_key(|(at, _)| *at);
    let cut = rows.len().saturating_sub(LINES_SHOWN_MAX);
    let rows = rows.get(cut..).unwrap_or_default();
    let first = rows.iter().find_map(|(_, row)| match row {
        Row::Event(place, _) => Some(*place),
        Row::Fault(..) | Row::Found => None,
    });
    let first = first.unwrap_or(scene.events.len());
    // Nodes without lines have no column.
    let lanes: Vec<usize> = (0..scene.lanes.len())
        .filter(|lane| scene.events.iter().any(|event| event.lane.map(usize::from) == Some(*lane)))
        .collect();
    let name = |lane: usize| scene.lanes.get(lane).map_or("", String::as_str);
    html! {
        div.filter { label { "Filter lines " input type="search" data-filter={ "logs-" (finding.id) } autocomplete="off"; } }
        @if cut > 0 {
            p.dim {
                "The last " (rows.len()) " of " (rows.len() + cut) " lines. "
                button.all type="button" data-lines=(finding.id) data-first=(first) { "Show all" }
            }
        }
        div.scroll.logs role="region" aria-label={ "Logs of finding " (finding.id) } tabindex="0" {
            table id={ "logs-" (finding.id) } {
                thead { tr { th scope="col" { "vtime" } @for lane in &lanes { th scope="col" { (foreign(name(*lane))) } } } }
                tbody {
                    @for (at, row) in rows {
                        @match row {
                            Row::Event(place, event) => {
                                @let column = event.lane.and_then(|lane| lanes.iter().position(|l| *l == usize::from(lane)));
                                tr data-event=(place) {
                                    th scope="row" { (seconds(*at)) }
                                    @match column {
                                        Some(column) => {
                                            @for _ in 0..column { td {} }
                                            td title=(plain(&event.text)) { span.unit { (foreign(&event.unit)) } " " (foreign(&event.text)) }
                                            @for _ in column + 1..lanes.len() { td {} }
                                        }
                                        None => { td.world colspan=(lanes.len().max(1)) { (foreign(&event.text)) } }
                                    }
                                }
                            }
                            Row::Fault(at, words) => {
                                tr.fault { th scope="row" { (seconds(*at)) } td colspan=(lanes.len().max(1)) { span.glyph aria-hidden="true" { "▲" } (foreign(words)) } }
                            }
                            Row::Found => {
                                tr.found { th scope="row" { (seconds(*at)) } td colspan=(lanes.len().max(1)) { span.glyph aria-hidden="true" { "✕" } (foreign(&finding.text)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

//! Chart of operations of clients: a row for each process, a bar from invocation to answer, and the violation marked.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::svg::{Scale, tick};
use super::text::{foreign, plain, seconds};
use crate::data::Finding;
use crate::scene::{Operation, Outcome, Scene};

/// Maximum number of operations in the chart, counted back from the finding. Operations that the finding names are
/// always shown, even earlier ones, so the chart can have more.
const OPERATIONS_SHOWN_MAX: usize = 120;
/// Maximum number of processes that have their own rows. If there are more, the processes of one node share rows. Two
/// operations share a row only if they do not overlap in time.
const ROWS_MAX: usize = 20;
/// Sizes and margins, in pixels.
const WIDTH: f64 = 1040.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 16.0;
const ROW: f64 = 20.0;
const BAR: f64 = 11.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;
/// Minimum width of a bar, in pixels.
const LEAST: f64 = 2.5;

pub(super) fn chart(finding: &Finding, scene: &Scene) -> Markup {
    let shown = shown(&scene.operations);
    let begin = shown.iter().map(|op| op.begin_ns).min().unwrap_or(0);
    let end = shown.iter().filter_map(|op| op.end_ns).chain([scene.found_ns]).max().unwrap_or(begin + 1);
    let (rows, place) = rows(scene, &shown, end);
    let height = TOP + ROW * rows.len() as f64 + BOTTOM;
    let x = Scale::new((begin as f64 / 1e9, end as f64 / 1e9), (LEFT, WIDTH - RIGHT));
    let at = |ns: u64| x.at(ns as f64 / 1e9);
    let marked: Vec<&&Operation> = shown.iter().filter(|op| op.marked).collect();
    let label = format!(
        "Chart of {} operations in {} rows of processes from {} s to {} s; {} are part of the violation.",
        shown.len(),
        rows.len(),
        seconds(begin),
        seconds(end),
        marked.len()
    );
    html! {
        @let cut = scene.operations.len() - shown.len();
        @if cut > 0 { p.dim { (cut) " earlier operations are not drawn." } }
        div.scroll role="region" aria-label={ "Operations of finding " (finding.id) } tabindex="0" {
            svg.history width=(WIDTH) height=(height) viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(label) {
                @for (row, name) in rows.iter().enumerate() {
                    @let y = TOP + ROW * row as f64;
                    line.grid x1=(LEFT) y1=(y + ROW / 2.0) x2=(WIDTH - RIGHT) y2=(y + ROW / 2.0) {}
                    text.label x=(LEFT - 10.0) y=(y + ROW / 2.0 + 4.0) text-anchor="end" { (plain(name)) }
                }
                @for tick_s in x.ticks(8) {
                    text.tick x=(x.at(tick_s)) y=(height - 8.0) text-anchor="middle" { (tick(tick_s)) " s" }
                }
                // Operations that the finding names are drawn last, on top of the others.
                @for (operation, row) in marked_last(&shown, &place) {
                    @let (from, to) = (at(operation.begin_ns), at(operation.end_ns.unwrap_or(end)));
                    @let y = TOP + ROW * row as f64 + (ROW - BAR) / 2.0;
                    g class=(class(operation)) {
                        title { (told(operation)) }
                        rect x=(from) y=(y) width=((to - from).max(LEAST)) height=(BAR) rx="2" {}
                        @if operation.outcome == Outcome::Fail {
                            line.cross x1=(from) y1=(y) x2=((to).max(from + LEAST)) y2=(y + BAR) {}
                        }
                        // The label stands beside the bar if there is room.
                        @if operation.marked && to < WIDTH - 120.0 {
                            text.mark x=(to.max(from + LEAST) + 5.0) y=(y + BAR - 1.5) { (plain(&brief(operation))) }
                        } @else if operation.marked && from > LEFT + 120.0 {
                            text.mark x=(from - 5.0) y=(y + BAR - 1.5) text-anchor="end" { (plain(&brief(operation))) }
                        }
                    }
                }
            }
        }
        p.legend {
            span { span.swatch.ok {} "acknowledged" }
            span { span.swatch.failed {} "failed" }
            span { span.swatch.open {} "unknown outcome" }
            span { span.swatch.marked {} "named by the finding" }
        }
        @if !marked.is_empty() {
            ul.facts { @for operation in marked { li { (foreign(&told(operation))) } } }
        }
    }
}

/// Returns operations with their rows. Operations that the finding names come last.
fn marked_last<'s>(shown: &[&'s Operation], place: &[usize]) -> Vec<(&'s Operation, usize)> {
    let mut all: Vec<(&Operation, usize)> = shown.iter().copied().zip(place.iter().copied()).collect();
    all.sort_by_key(|(operation, _)| operation.marked);
    all
}

/// Returns the operations to draw.
fn shown(all: &[Operation]) -> Vec<&Operation> {
    let first = all.len().saturating_sub(OPERATIONS_SHOWN_MAX);
    all.iter().enumerate().filter(|(place, op)| *place >= first || op.marked).map(|(_, op)| op).collect()
}

/// Returns the names of the rows, and the row of each operation.
fn rows(scene: &Scene, shown: &[&Operation], end: u64) -> (Vec<String>, Vec<usize>) {
    let node = |op: &Operation| {
        op.lane.and_then(|lane| scene.lanes.get(usize::from(lane))).map_or("", String::as_str)
    };
    let mut processes: BTreeMap<(Option<u16>, &str), usize> = BTreeMap::new();
    let mut names = Vec::new();
    for op in shown {
        processes.entry((op.lane, &op.process)).or_insert_with(|| {
            names.push(format!("{} · {}", node(op), op.process));
            names.len() - 1
        });
    }
    if names.len() <= ROWS_MAX {
        let place = |op: &&Operation| processes.get(&(op.lane, op.process.as_str())).copied().unwrap_or(0);
        return (names, shown.iter().map(place).collect());
    }
    // A track is a row that the processes of one node share. An operation takes the first track of its node that is
    // free when the operation begins. If none is free, the node gets another track.
    let mut tracks: Vec<(Option<u16>, u64)> = Vec::new();
    let mut place = Vec::new();
    for op in shown {
        let free = tracks.iter().position(|(lane, until)| *lane == op.lane && *until <= op.begin_ns);
        let track = free.unwrap_or_else(|| {
            tracks.push((op.lane, 0));
            tracks.len() - 1
        });
        if let Some(track) = tracks.get_mut(track) {
            track.1 = op.end_ns.unwrap_or(end);
        }
        place.push(track);
    }
    // Rows of the same node are adjacent.
    let mut order: Vec<usize> = (0..tracks.len()).collect();
    order.sort_by_key(|track| tracks.get(*track).map(|(lane, _)| *lane));
    let mut row_of = vec![0; tracks.len()];
    order.iter().enumerate().for_each(|(row, track)| row_of[*track] = row);
    let name = |track: &usize| {
        let lane = tracks.get(*track).and_then(|(lane, _)| *lane);
        lane.and_then(|lane| scene.lanes.get(usize::from(lane))).cloned().unwrap_or_default()
    };
    (order.iter().map(name).collect(), place.into_iter().map(|track| row_of[track]).collect())
}

fn class(operation: &Operation) -> &'static str {
    match (operation.outcome, operation.marked) {
        (Outcome::Ok, false) => "op ok",
        (Outcome::Fail, false) => "op failed",
        (Outcome::Unknown, false) => "op open",
        (Outcome::Ok, true) => "op ok marked",
        (Outcome::Fail, true) => "op failed marked",
        (Outcome::Unknown, true) => "op open marked",
    }
}

fn brief(operation: &Operation) -> String {
    format!("{} {}", operation.f, operation.value).trim().chars().take(24).collect()
}

fn told(operation: &Operation) -> String {
    let outcome = match operation.outcome {
        Outcome::Ok => "acknowledged",
        Outcome::Fail => "failed",
        Outcome::Unknown => "unknown outcome",
    };
    let key = operation.key.as_ref().map_or(String::new(), |key| format!(" {key}"));
    let answer =
        if operation.answer.is_empty() { String::new() } else { format!(", answer {}", operation.answer) };
    let end = operation.end_ns.map_or("no answer".to_owned(), |end| format!("{} s", seconds(end)));
    let what: Vec<&str> = [operation.f.as_str(), key.trim(), operation.value.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let (process, begin) = (&operation.process, seconds(operation.begin_ns));
    plain(&format!("process {process}: {}, {outcome}{answer}, {begin} s to {end}", what.join(" ")))
}

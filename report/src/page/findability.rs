//! Section on how often explorations find each problem, and how long a search without it must be until the problem
//! counts as gone.

use maud::{Markup, html};

use super::summary::tag;
use super::svg::{Scale, line};
use super::text::{confidence, count, counted, cpu, foreign, plain, share};
use crate::data::{Data, Status};
use crate::findability::{Clean, Outlook};

/// Sizes and margins of the plot, in pixels.
const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 34.0;
/// Maximum number of problems with a plot.
const PROBLEMS_SHOWN_MAX: usize = 40;

/// Finding of this exploration, or finding of an older exploration that this exploration did not show.
struct Problem<'d> {
    anchor: String,
    property: &'d str,
    text: &'d str,
    status: Option<Status>,
    cpu: &'d Outlook,
    instructions: &'d Outlook,
}

pub(super) fn section(data: &Data) -> Markup {
    let s = &data.summary;
    let problems = problems(data);
    html! {
        section #findability aria-labelledby="findability-title" {
            h2 #findability-title { "Findability" }
            p.dim {
                "After a fix, how much testing without a hit makes it unlikely that a bug is still there? Times are CPU times, and each subtree counts once. \
                 The rate of hits is uncertain, so the time to the next hit has a heavy tail (Lomax)."
                @if s.adaptive { " The search was adaptive, so the figures hold only for this strategy." }
                @if data.older.is_empty() { " Name older runs with " code { "--against" } " to see the history. Name all of them: without the clean runs, a bug looks more frequent than it is." }
            }
            @if problems.is_empty() { p { "No run shows a problem, so there is no rate. A bug whose mean time to a hit is above " (clean_bound(data)) " may be hidden (" (confidence(s.confidence)) " confidence)." } }
            @for problem in problems.iter().take(PROBLEMS_SHOWN_MAX) { (one(data, problem)) }
            @if problems.len() > PROBLEMS_SHOWN_MAX { p.dim { (problems.len() - PROBLEMS_SHOWN_MAX) " more problems are in the data." } }
            (older(data))
        }
    }
}

/// Returns text with a lower bound on the CPU time that it takes on average to find a problem. The bound holds for
/// problems that this exploration did not find.
fn clean_bound(data: &Data) -> String {
    let clean = crate::findability::mean_between(data.summary.cpu_ns as f64, 0, data.summary.confidence);
    clean.map_or("0 ns".to_owned(), |(low, _)| cpu(low)) + " of CPU"
}

fn problems(data: &Data) -> Vec<Problem<'_>> {
    let found = data.findings.iter().map(|finding| Problem {
        anchor: format!("findability-{}", finding.id),
        property: &finding.property,
        text: &finding.text,
        status: finding.status,
        cpu: &finding.cpu,
        instructions: &finding.instructions,
    });
    let gone = data.gone.iter().enumerate().map(|(place, gone)| Problem {
        anchor: format!("gone-{place}"),
        property: &gone.property,
        text: &gone.text,
        status: Some(gone.status),
        cpu: &gone.cpu,
        instructions: &gone.instructions,
    });
    found.chain(gone).collect()
}

fn one(data: &Data, problem: &Problem<'_>) -> Markup {
    html! {
        article.outlook id=(problem.anchor) {
            h3 { (foreign(problem.property)) @if let Some(status) = problem.status { (tag(status.word())) } }
            p.dim { (foreign(problem.text)) }
            p { (told(data, problem.cpu)) }
            (plot(data, problem.cpu))
            @if let Some(mean) = problem.instructions.mean {
                p.dim {
                    "In instructions, which are the same on every host: " (count(mean as u64)) " on average per hit"
                    @if let Some(clean) = problem.instructions.clean { "; " (count(clean.needed as u64)) " without a hit give " (confidence(data.summary.confidence)) " confidence" }
                    "."
                }
            }
        }
    }
}

/// Describes the estimates in words.
fn told(data: &Data, outlook: &Outlook) -> String {
    let runs = outlook.survival.len() as u64;
    let seen = outlook.survival.iter().filter(|p| **p == Some(1.0)).count() as u64;
    let mut text = match outlook.mean {
        Some(mean) => format!("It takes {} of CPU time on average to find the bug", cpu(mean)),
        None => return "The bug was not found, so there is no rate.".to_owned(),
    };
    if let (Some(low), Some(high)) = (outlook.mean_low, outlook.mean_high) {
        let sure = confidence(data.summary.confidence);
        text += &format!(" (between {} and {} with {sure} confidence)", cpu(low), cpu(high));
    }
    if runs > 1 {
        text += &format!("; {seen} of {runs} runs found it");
    }
    let Some(Clean { spent, needed, runs_left }) = outlook.clean else { return text + "." };
    let sure = confidence(data.summary.confidence);
    if spent > 0.0 {
        let p = outlook.survival.last().copied().flatten().unwrap_or(1.0);
        let since = outlook.last_hit.map_or(0, |last| runs.saturating_sub(last as u64 + 1));
        text += &format!(
            ". Since then, {} of CPU time in {} had no hit. If the bug is still there, the probability of that is {}",
            cpu(spent),
            counted(since, "run", "runs"),
            share(p)
        );
    }
    match runs_left {
        Some(0) => text + &format!(". That gives {sure} confidence that the bug is gone."),
        Some(n) => {
            let left = (needed - spent).max(0.0);
            let more = if spent > 0.0 { "more " } else { "" };
            let like = counted(n, "run like the last one", "runs like the last one");
            text + &format!(
                ". After a fix, {} {more}of CPU time without a hit give {sure} confidence that the bug is gone: {like}.",
                cpu(left)
            )
        }
        None => {
            text + &format!(
                ". After a fix, {} of CPU time without a hit give {sure} confidence that the bug is gone. That is more than {} runs like the last one.",
                cpu(needed),
                crate::findability::PROJECTED_MAX
            )
        }
    }
}

fn plot(data: &Data, outlook: &Outlook) -> Markup {
    let past = outlook.survival.len();
    let all = past + outlook.projected.len();
    let alpha = 1.0 - data.summary.confidence;
    let x = Scale::new((0.0, (all + 1) as f64), (LEFT, WIDTH - RIGHT));
    let y = Scale::new((0.0, 1.0), (HEIGHT - BOTTOM, TOP));
    let points: Vec<(usize, f64)> =
        outlook.survival.iter().enumerate().filter_map(|(i, p)| Some((i + 1, (*p)?))).collect();
    let ahead: Vec<(usize, f64)> =
        outlook.projected.iter().enumerate().map(|(i, p)| (past + i + 1, *p)).collect();
    let place = |(i, p): (usize, f64)| (x.at(i as f64), y.at(p));
    let joint: Vec<(f64, f64)> =
        points.last().copied().into_iter().chain(ahead.iter().copied()).map(place).collect();
    let passed = points
        .iter()
        .chain(&ahead)
        .find(|(i, p)| *p <= alpha && *i > outlook.last_hit.map_or(0, |last| last + 1));
    let label = format!(
        "Plot of the probability that the bug, if it is still there, stays unseen after its last hit, over {} and {}. {}",
        counted(past as u64, "run", "runs"),
        counted(ahead.len() as u64, "projected run", "projected runs"),
        match passed {
            Some((i, _)) => format!("It falls below {} at run {i}.", share(alpha)),
            None => format!("It does not fall below {}.", share(alpha)),
        }
    );
    html! {
        @if !points.is_empty() {
            div.scroll role="region" aria-label={ "Plot: " (plain(&label)) } tabindex="0" {
                svg.survival width=(WIDTH) height=(HEIGHT) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(label) {
                    @for p in [0.0, 0.5, 1.0] {
                        line.grid x1=(LEFT) y1=(y.at(p)) x2=(WIDTH - RIGHT) y2=(y.at(p)) {}
                        text.tick x=(LEFT - 8.0) y=(y.at(p) + 4.0) text-anchor="end" { (share(p)) }
                    }
                    line.bound x1=(LEFT) y1=(y.at(alpha)) x2=(WIDTH - RIGHT) y2=(y.at(alpha)) {}
                    text.bound x=(LEFT + 4.0) y=(y.at(alpha) - 5.0) { (confidence(data.summary.confidence)) " confidence" }
                    path.past d=(line(points.iter().copied().map(place))) {}
                    path.ahead d=(line(joint)) {}
                    @for point in &points {
                        @let (cx, cy) = place(*point);
                        circle class=(if point.1 >= 1.0 { "hit" } else { "clean" }) cx=(cx) cy=(cy) r="4" { title { "run " (point.0) ": " (share(point.1)) } }
                    }
                    @for point in &ahead {
                        @let (cx, cy) = place(*point);
                        circle.ahead cx=(cx) cy=(cy) r="2.5" { title { "projected: " (share(point.1)) } }
                    }
                    line.now x1=(x.at(past as f64)) y1=(TOP) x2=(x.at(past as f64)) y2=(HEIGHT - BOTTOM) {}
                    text.tick x=(x.at(past as f64)) y=(HEIGHT - BOTTOM + 16.0) text-anchor="middle" { "this run" }
                    @if let Some((i, _)) = passed.filter(|(i, _)| *i > past) {
                        text.tick x=(x.at(*i as f64).min(WIDTH - RIGHT - 24.0)) y=(HEIGHT - BOTTOM + 16.0) text-anchor="middle" { "+" (i - past) " " (if i - past == 1 { "run" } else { "runs" }) }
                    }
                }
            }
        }
    }
}

fn older(data: &Data) -> Markup {
    html! {
        @if !data.older.is_empty() {
            h3 { "Runs" }
            div.scroll role="region" aria-label="Runs" tabindex="0" {
                table {
                    thead { tr { th scope="col" { "Run" } th.number scope="col" { "Seed" } th.number scope="col" { "Branches" } th.number scope="col" { "Findings" } th.number scope="col" { "CPU" } th scope="col" { "World and image" } } }
                    tbody {
                        @for run in &data.older {
                            tr { th scope="row" { (foreign(&run.run)) } td.number { (run.seed) } td.number { (count(run.branches)) } td.number { (count(run.findings)) } td.number { (cpu(run.cpu_ns as f64)) } td { (if run.same { "the same" } else { "another version" }) } }
                        }
                        tr { th scope="row" { (foreign(&data.summary.run)) " (this run)" } td.number { (data.summary.seed) } td.number { (count(data.summary.branches)) } td.number { (count(data.findings.len() as u64)) } td.number { (cpu(data.summary.cpu_ns as f64)) } td {} }
                    }
                }
            }
        }
    }
}

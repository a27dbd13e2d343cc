//! Shows the step (observed event) that decided a finding, and a plot of the likelihood over vtime. The likelihood is
//! the share of reruns from a vtime that show the finding. It jumps at the decisive step.

use everett_explorer::causality::{CausalityEnd, Step};
use maud::{Markup, html};

use super::svg::{Scale, line, tick};
use super::text::{counted, foreign, share};
use crate::causality::{code, told};
use crate::data::{Causality, Finding, Jump};

/// Sizes and margins of the plot, in pixels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 34.0;
const SECOND: f64 = 1e9;
/// Half of the width of the bars that end a confidence interval, in pixels.
const WHISKER: f64 = 3.0;

pub(super) fn part(finding: &Finding) -> Markup {
    html! {
        @if let Some(causality) = &finding.causality {
            h4 { "Where it was decided" @if causality.why == CausalityEnd::Running { span.tag.rare { "interim" } } span.dim { " " (counted(causality.futures, "future", "futures")) " of this timeline" } }
            p { (foreign(&causality.sentence)) }
            (plot(causality))
            @if let Some(jump) = &causality.jump { (steps(causality, jump)) }
        }
    }
}

fn steps(causality: &Causality, jump: &Jump) -> Markup {
    let row = |class: &str, step: &Step| html! { li class=(class) { (foreign(&told(step))) } };
    html! {
        @if let Some(step) = &causality.step { p { (foreign(step)) } }
        @if !jump.context.is_empty() {
            p { "Events around this step, on the same nodes:" }
            ol.causality-steps.context { @for step in &jump.context { (row("explains", step)) } }
            p { "Everything there:" }
        }
        ol.causality-steps {
            @for step in &jump.steps_before { (row("dim", step)) }
            @for step in &jump.steps { (row("decides", step)) }
            @for step in &jump.steps_after { (row("dim", step)) }
        }
        @if !jump.code.is_empty() {
            details { summary { "Code that ran in this interval" } ul.facts { @for place in &jump.code { li { (foreign(code(place).trim())) } } } }
        }
    }
}

fn plot(causality: &Causality) -> Markup {
    let second = |ns: u64| ns as f64 / SECOND;
    let ends = (second(causality.root_ns), second(causality.found_ns));
    let x = Scale::new(ends, (LEFT, WIDTH - RIGHT));
    let y = Scale::new((0.0, 1.0), (HEIGHT - BOTTOM, TOP));
    let places =
        causality.points.iter().map(|point| (x.at(second(point.vtime_ns)), y.at(point.share.likelihood)));
    let label = format!("Plot of the likelihood of the finding over vtime. {}", causality.sentence);
    html! {
        div.scroll role="region" aria-label="Plot of the likelihood" tabindex="0" {
            svg.likelihood width=(WIDTH) height=(HEIGHT) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(super::text::plain(&label)) {
                @for p in [0.0, 0.5, 1.0] {
                    line.grid x1=(LEFT) y1=(y.at(p)) x2=(WIDTH - RIGHT) y2=(y.at(p)) {}
                    text.tick x=(LEFT - 8.0) y=(y.at(p) + 4.0) text-anchor="end" { (share(p)) }
                }
                @for at in x.ticks(6) {
                    text.tick x=(x.at(at)) y=(HEIGHT - BOTTOM + 16.0) text-anchor="middle" { (tick(at)) " s" }
                }
                @if let Some(jump) = &causality.jump {
                    @let (from, to) = (x.at(second(jump.from_ns)), x.at(second(jump.to_ns)));
                    rect.jump x=(from) y=(TOP) width=((to - from).max(2.0)) height=(HEIGHT - BOTTOM - TOP) {}
                    text.label x=(from.clamp(LEFT, WIDTH - RIGHT - 60.0)) y=(TOP - 8.0) { "it jumps here" }
                }
                path.line d=(line(places)) {}
                @for point in &causality.points {
                    @let (at, low, high) = (x.at(second(point.vtime_ns)), y.at(point.share.low), y.at(point.share.high));
                    path.interval d={ (line([(at, low), (at, high)])) (line([(at - WHISKER, low), (at + WHISKER, low)])) (line([(at - WHISKER, high), (at + WHISKER, high)])) } {}
                    circle cx=(at) cy=(y.at(point.share.likelihood)) r="3" {
                        title { (crate::causality::exact(point.vtime_ns)) " s: " (point.share.shown) " of " (point.share.futures) ", " (share(point.share.low)) " to " (share(point.share.high)) }
                    }
                }
                line.found x1=(x.at(ends.1)) y1=(TOP) x2=(x.at(ends.1)) y2=(HEIGHT - BOTTOM) {}
            }
        }
    }
}

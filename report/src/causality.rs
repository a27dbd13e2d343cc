//! The causality of a finding in words.

use everett_explorer::causality::{Causality, Code, Count, Jump, Step, StepKind, Vary, Why};
use everett_explorer::report::figures::counted;
use everett_input::text::printable;

/// Maximum number of steps that are listed.
const STEPS_SHOWN: usize = 12;
/// Maximum number of functions that are listed.
const CODE_SHOWN: usize = 8;

/// Returns the result in a sentence. That of a search that has not ended says so first.
#[must_use]
pub fn sentence(causality: &Causality) -> String {
    match causality.why {
        Why::Running => format!("Interim, the search had not ended: {}", plain_sentence(causality)),
        _ => plain_sentence(causality),
    }
}

fn plain_sentence(causality: &Causality) -> String {
    let futures = counted(causality.futures, "future", "futures");
    let Some(jump) = &causality.jump else {
        return match causality.at_root().filter(|_| causality.why == Why::Flat) {
            Some(root) => format!(
                "No step of this timeline decides it: {} of the futures from the root moment show it ({}).",
                percent(root.share()),
                interval(root)
            ),
            None => format!("No jump of the likelihood is certain after {futures}."),
        };
    };
    let Jump { before, after, from_ns, to_ns, .. } = jump;
    let rise = match after {
        Some(after) => format!("to {} ({})", percent(after.share()), interval(*after)),
        None => "to the finding itself".to_owned(),
    };
    format!(
        "The likelihood jumps from {} ({}) {rise}, between {} s and {} s, with a probability of {} after {futures}.",
        percent(before.share()),
        interval(*before),
        exact(*from_ns),
        exact(*to_ns),
        certain(f64::from(jump.probability_ppm) / 1e6),
    )
}

/// Returns what happened where the likelihood jumps, in a sentence.
#[must_use]
pub fn step(jump: &Jump) -> String {
    match (jump.is_narrowest, &jump.steps[..]) {
        (true, [step]) => format!("There: {}", told(step)),
        (true, []) => match (jump.steps_before.last(), jump.steps_after.first()) {
            (_, Some(after)) => format!("Nothing is visible there; the next step is: {}", told(after)),
            (Some(before), None) => format!("Nothing is visible there; the step before is: {}", told(before)),
            (None, None) => "Nothing is visible there.".to_owned(),
        },
        (true, [first, ..]) => {
            format!("There: {} (and {} more at that time)", told(first), jump.steps_count.saturating_sub(1))
        }
        (false, _) => format!(
            "{} lie in this interval; a longer --budget, or more --branches, narrows it.",
            counted(jump.steps_count, "step", "steps")
        ),
    }
}

/// Returns the result as a text, a line each.
#[must_use]
pub fn lines(causality: &Causality) -> Vec<String> {
    let mut lines = vec![sentence(causality)];
    if let Some(jump) = &causality.jump {
        lines.push(step(jump));
        let listed = |title: &str, steps: &[Step], lines: &mut Vec<String>| {
            let from = steps.len().saturating_sub(STEPS_SHOWN);
            lines.extend(
                steps.get(from..).into_iter().flatten().map(|step| format!("  {title} {}", told(step))),
            );
        };
        listed("around", &jump.context, &mut lines);
        listed("before", &jump.steps_before, &mut lines);
        listed("     >", &jump.steps, &mut lines);
        listed(" after", &jump.steps_after, &mut lines);
        lines.extend(jump.code.iter().take(CODE_SHOWN).map(code));
    }
    lines.push(match causality.vary {
        Vary::All => "Futures have random streams and faults of their own.".to_owned(),
        Vary::Streams => "Futures have the finding's faults, and random streams of their own.".to_owned(),
    });
    let all = causality.points.iter();
    lines.extend(all.map(|point| {
        let Count { futures, shown } = point.count;
        let likelihood = percent(point.count.share());
        let bar = "#".repeat((point.count.share() * 20.0).round() as usize);
        format!(
            "  {} s {bar:20} {likelihood:>5}  {shown} of {futures} ({})",
            exact(point.vtime_ns),
            interval(point.count)
        )
    }));
    lines
}

/// Returns a step in words: its kind if the text does not say it, and its text.
#[must_use]
pub fn told(step: &Step) -> String {
    let kind = match step.kind {
        StepKind::Sent => "sent: ",
        StepKind::Message | StepKind::Fault | StepKind::Operation | StepKind::Line => "",
    };
    let at = exact(step.vtime_ns);
    let text = printable(step.text.trim());
    // A line of evidence begins with its own time; that of a sent message is the time of its fate.
    let text = text.strip_prefix(&at).map_or(text.as_str(), str::trim_start);
    format!("{at} s {kind}{text}")
}

/// Returns executed code in words.
#[must_use]
pub fn code(code: &Code) -> String {
    let Code { node, program, place, edges } = code;
    format!(
        "  code on {}: {} in {}, {}",
        printable(node),
        printable(place),
        printable(program),
        counted(*edges, "edge", "edges")
    )
}

/// Returns a probability as a percentage.
fn percent(p: f64) -> String {
    format!("{:.0} %", p * 100.0)
}

/// Returns the probability of a conclusion as a percentage. It is never certain.
fn certain(p: f64) -> String {
    if p > 0.99 { "more than 99 %".to_owned() } else { percent(p) }
}

/// Returns the bounds of a likelihood.
fn interval(count: Count) -> String {
    let (low, high) = count.between();
    format!("{:.0} to {:.0} %", low * 100.0, high * 100.0)
}

/// Returns a vtime in seconds, to the nanosecond.
#[must_use]
pub fn exact(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

//! Describes in words the result of a search for the step (e.g. a message) that decided a finding.

use crate::exploration::figures::counted;
use everett_explorer::causality::{Causality, CausalityEnd, Code, Count, Jump, Step, StepKind, Vary};
use everett_input::text::printable;

/// Maximum number of steps in a list.
const STEPS_SHOWN_MAX: usize = 12;
/// Maximum number of functions in the list of executed code.
const CODE_SHOWN_MAX: usize = 8;

/// Returns the result as a sentence. If the search has not ended, the sentence begins by saying so.
#[must_use]
pub fn sentence(causality: &Causality) -> String {
    match causality.why {
        CausalityEnd::Running => {
            format!("Interim result of an unfinished search: {}", plain_sentence(causality))
        }
        _ => plain_sentence(causality),
    }
}

fn plain_sentence(causality: &Causality) -> String {
    let futures = counted(causality.futures, "future", "futures");
    let Some(jump) = &causality.jump else {
        return match causality.at_root().filter(|_| causality.why == CausalityEnd::Flat) {
            Some(root) => format!(
                "No step of this timeline decides the finding: {} of the futures from the root moment show it ({}).",
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

/// Returns a sentence about the step at which the likelihood of the finding jumps.
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

/// Returns the whole result as lines of text.
#[must_use]
pub fn lines(causality: &Causality) -> Vec<String> {
    let mut lines = vec![sentence(causality)];
    if let Some(jump) = &causality.jump {
        lines.push(step(jump));
        let listed = |title: &str, steps: &[Step], lines: &mut Vec<String>| {
            let from = steps.len().saturating_sub(STEPS_SHOWN_MAX);
            lines.extend(
                steps.get(from..).into_iter().flatten().map(|step| format!("  {title} {}", told(step))),
            );
        };
        listed("around", &jump.context, &mut lines);
        listed("before", &jump.steps_before, &mut lines);
        listed("     >", &jump.steps, &mut lines);
        listed(" after", &jump.steps_after, &mut lines);
        lines.extend(jump.code.iter().take(CODE_SHOWN_MAX).map(code));
    }
    lines.push(match causality.vary {
        Vary::All => "Each future draws its own random streams and faults.".to_owned(),
        Vary::Streams => "Each future has the finding's faults and draws its own random streams.".to_owned(),
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

/// Returns a step in words: its vtime and its text. The kind of the step precedes the text if the text does not show
/// it.
#[must_use]
pub fn told(step: &Step) -> String {
    let kind = match step.kind {
        StepKind::Sent => "sent: ",
        StepKind::Message | StepKind::Fault | StepKind::Operation | StepKind::Line => "",
    };
    let at = exact(step.vtime_ns);
    let text = printable(step.text.trim());
    // The text may begin with a time. The line omits this time if it equals the step's time. For a sent message the
    // two times differ, so the text keeps its time.
    let text = text.strip_prefix(&at).map_or(text.as_str(), str::trim_start);
    format!("{at} s {kind}{text}")
}

/// Returns a line about an executed function.
#[must_use]
pub fn code(code: &Code) -> String {
    let Code { node, program, place, edges, lines } = code;
    let lines = match lines.as_slice() {
        [] => String::new(),
        lines => format!(", at {}", printable(&lines.join(", "))),
    };
    format!(
        "  code on {}: {} in {}, {}{lines}",
        printable(node),
        printable(place),
        printable(program),
        counted(*edges, "edge", "edges")
    )
}

fn percent(p: f64) -> String {
    format!("{:.0} %", p * 100.0)
}

/// Returns the probability of a conclusion as a percentage. It never says 100 %.
fn certain(p: f64) -> String {
    if p > 0.99 { "more than 99 %".to_owned() } else { percent(p) }
}

/// Returns the confidence bounds of a likelihood.
fn interval(count: Count) -> String {
    let (low, high) = count.between();
    format!("{:.0} to {:.0} %", low * 100.0, high * 100.0)
}

/// Returns a vtime in seconds, to the nanosecond.
#[must_use]
pub fn exact(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use everett_explorer::causality::{Point, Vary};

    use super::*;

    fn causality() -> Causality {
        let count = |shown| Count { futures: 20, shown };
        let step = |vtime_ns, kind, text: &str| Step { vtime_ns, kind, text: text.to_owned() };
        Causality {
            schema_version: 1,
            timeline: "e3:00:7/1.1".to_owned(),
            property: "p".to_owned(),
            signature: "s".to_owned(),
            found_ns: 3_000_000_000,
            root_ns: 1_000_000_000,
            end_ns: 3_000_000_000,
            vary: Vary::Streams,
            error_ppm: 50_000,
            why: CausalityEnd::Named,
            futures: 60,
            points: [(1_000_000_000, 0), (2_000_000_000, 5), (2_000_500_000, 19)]
                .map(|(vtime_ns, shown)| Point { vtime_ns, count: count(shown) })
                .to_vec(),
            jump: Some(Jump {
                from_ns: 2_000_000_000,
                to_ns: 2_000_500_000,
                before: count(5),
                after: Some(count(19)),
                probability_ppm: 995_000,
                is_narrowest: true,
                steps: vec![step(2_000_200_000, StepKind::Sent, "2.050000000 DELIVER a > db TCP")],
                steps_count: 1,
                steps_before: vec![step(1_900_000_000, StepKind::Line, "1.900000000 a/p | before")],
                steps_after: vec![step(2_100_000_000, StepKind::Line, "2.100000000 a/p | after")],
                context: vec![step(1_500_000_000, StepKind::Fault, "1.500000000 fault #0")],
                code: Vec::new(),
            }),
            digest: String::new(),
        }
    }

    #[test]
    fn the_result_is_told_line_by_line() {
        let expected = [
            "The likelihood jumps from 25 % (11 to 47 %) to 95 % (76 to 99 %), between 2.000000000 s and 2.000500000 s, with a \
             probability of more than 99 % after 60 futures.",
            "There: 2.000200000 s sent: 2.050000000 DELIVER a > db TCP",
            "  around 1.500000000 s fault #0",
            "  before 1.900000000 s a/p | before",
            "       > 2.000200000 s sent: 2.050000000 DELIVER a > db TCP",
            "   after 2.100000000 s a/p | after",
            "Each future has the finding's faults and draws its own random streams.",
            "  1.000000000 s                        0 %  0 of 20 (0 to 16 %)",
            "  2.000000000 s #####                 25 %  5 of 20 (11 to 47 %)",
            "  2.000500000 s ###################   95 %  19 of 20 (76 to 99 %)",
        ];
        assert_eq!(lines(&causality()), expected);
    }

    #[test]
    fn results_without_a_step_say_why() {
        let mut it = causality();
        it.why = CausalityEnd::Running;
        assert!(
            sentence(&it)
                .starts_with("Interim result of an unfinished search: The likelihood jumps from 25 %")
        );
        let jump = it.jump.as_mut().unwrap();
        jump.after = None;
        assert!(sentence(&it).contains("to the finding itself, between"));
        let jump = it.jump.as_mut().unwrap();
        let of = |jump: &Jump| step(jump);
        jump.steps.push(jump.steps[0].clone());
        jump.steps_count = 2;
        assert!(of(jump).ends_with("(and 1 more at that time)"), "{}", of(jump));
        jump.steps.clear();
        assert!(of(jump).starts_with("Nothing is visible there; the next step is: 2.1"), "{}", of(jump));
        jump.steps_after.clear();
        assert!(of(jump).starts_with("Nothing is visible there; the step before is: 1.9"), "{}", of(jump));
        (jump.is_narrowest, jump.steps_count) = (false, 7);
        assert!(of(jump).starts_with("7 steps lie in this interval;"), "{}", of(jump));
        it.jump = None;
        it.why = CausalityEnd::Futures;
        assert_eq!(sentence(&it), "No jump of the likelihood is certain after 60 futures.");
        (it.why, it.points[0].count.shown) = (CausalityEnd::Flat, 20);
        let flat = "No step of this timeline decides the finding: 100 % of the futures from the root moment show it (84 to 100 %).";
        assert_eq!(sentence(&it), flat);
    }
}

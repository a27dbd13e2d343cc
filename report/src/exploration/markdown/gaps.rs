//! Section on gaps: possible faults, orders of events and values of variables that no branch showed. It also lists
//! properties, assertions and test commands that no branch fulfilled.

use std::fmt::Write;

use super::super::Report;
use super::super::figures::{count, counted};
use super::super::span::code;
use crate::exploration::assertions::{Asserted, Verdict};
use everett_explorer::coverage::{FaultGap, Gaps, OrderGap, ValueGap};

/// Maximum number of lines in each list of faults, orders of events or values.
const ENTRIES_SHOWN_MAX: usize = 20;
/// Maximum number of lines in each list of `sometimes` properties, assertions or test commands.
const NAMES_SHOWN_MAX: usize = 100;

pub(super) fn write(report: &Report) -> String {
    let mut text = "## Not seen\n".to_owned();
    let empty = text.len();
    let seen = report.sometimes.len() as u64;
    let declared = report.never.len() as u64 + seen;
    if declared > 0 {
        let names: Vec<String> = report.never.iter().map(|name| code(name)).collect();
        let title = format!(
            "`sometimes` properties that were not seen, {} of {}",
            count(names.len() as u64),
            count(declared)
        );
        list(&mut text, &title, &names, names.len() as u64, NAMES_SHOWN_MAX);
    }
    assertions(&mut text, report);
    commands(&mut text, report);
    match &report.gaps {
        Some(gaps) => of(&mut text, gaps),
        None => text += "\nIt is not known which faults, orders and values were not seen.\n",
    }
    if text.len() == empty {
        text += "\nEverything that can be listed here was seen.\n";
    }
    text
}

/// Writes the assertions that were never reached although they should have been, or that never held although they
/// should have held once.
fn assertions(text: &mut String, report: &Report) {
    let never = report.assertions.iter().filter(|one| one.verdict == Verdict::NeverReached);
    let line = |one: &Asserted| match one.failed {
        0 => format!("{} {}: never reached", one.kind.name(), code(&one.name)),
        failed => {
            let branches = counted(failed, "branch", "branches");
            format!("{} {}: reached on {branches}, and never true", one.kind.name(), code(&one.name))
        }
    };
    let lines: Vec<String> = never.map(line).collect();
    let all = count(report.assertions.len() as u64);
    let title = format!("Assertions that were never reached or never held, {} of {all}", lines.len());
    list(text, &title, &lines, lines.len() as u64, NAMES_SHOWN_MAX);
}

/// Writes the test commands that ran but never succeeded, and those that were never started.
fn commands(text: &mut String, report: &Report) {
    let all = count(report.commands.len() as u64);
    let fruitless = report.commands.iter().filter(|command| command.is_fruitless());
    let lines: Vec<String> =
        fruitless.map(|command| format!("{}: {}", code(&command.name), command.counts_told())).collect();
    let title = format!("Test commands that ran and never succeeded, {} of {all}", lines.len());
    list(text, &title, &lines, lines.len() as u64, NAMES_SHOWN_MAX);
    let unused = report.commands.iter().filter(|command| command.is_unused());
    let names: Vec<String> = unused.map(|command| code(&command.name)).collect();
    let title = format!("Test commands that were never started, {} of {all}", names.len());
    list(text, &title, &names, names.len() as u64, NAMES_SHOWN_MAX);
}

fn of(text: &mut String, gaps: &Gaps) {
    let Gaps { faults, orders, values } = gaps;
    let lines = by_phase(&faults.first);
    let title = format!("Faults that never began in a phase that was seen, {}", count(faults.count));
    // Faults of one phase (a state of one node) share a line. The number of lines for the faults that are not listed is
    // unknown. So `all` counts a line for each of them, and is an upper bound.
    let listed = faults.first.len() as u64;
    let all = lines.len() as u64 + faults.count.saturating_sub(listed);
    list(text, &title, &lines, all, ENTRIES_SHOWN_MAX);
    let lines: Vec<String> = orders.first.iter().map(order).collect();
    let title = format!("Orders of events that were seen only in reverse, {}", count(orders.count));
    list(text, &title, &lines, orders.count, ENTRIES_SHOWN_MAX);
    let lines: Vec<String> = values.first.iter().map(value).collect();
    let title = format!("Declared values that were never seen, {}", count(values.count));
    list(text, &title, &lines, values.count, ENTRIES_SHOWN_MAX);
}

/// Returns a line for each phase, with its faults. Gaps of the same phase must be adjacent.
fn by_phase(gaps: &[FaultGap]) -> Vec<String> {
    let phases = gaps.chunk_by(|a, b| a.phase == b.phase);
    let line = |gaps: &[FaultGap]| {
        let faults: Vec<String> = gaps.iter().map(|gap| code(&gap.fault)).collect();
        let (phase, seen) = gaps.first().map_or(("", 0), |gap| (gap.phase.as_str(), gap.seen));
        let branches = counted(seen, "branch", "branches");
        format!("in {} ({branches}): {}", code(phase), faults.join(", "))
    };
    phases.map(line).collect()
}

fn order(gap: &OrderGap) -> String {
    let place = if gap.across { "another" } else { "the same" };
    let reversed = counted(gap.reversed, "branch", "branches");
    format!("{} on {place} node before {} (the reverse: {reversed})", code(&gap.first), code(&gap.then))
}

fn value(gap: &ValueGap) -> String {
    format!("{} is {} (rule {})", code(&gap.variable), code(&gap.value), code(&gap.rule))
}

/// Writes the first `most` lines of a list. Writes nothing if the list is empty.
fn list(text: &mut String, title: &str, lines: &[String], all: u64, most: usize) {
    let (shown, _) = super::first(lines, most);
    if shown.is_empty() {
        return;
    }
    let _ = write!(text, "\n{title}:\n\n");
    for line in shown {
        let _ = writeln!(text, "* {line}");
    }
    if all > shown.len() as u64 {
        text.push_str("* … and more: see the JSON report, whose lists have a higher limit\n");
    }
}

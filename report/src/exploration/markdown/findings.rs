//! Section on findings, with commands that examine each finding further.

use std::fmt::Write;

use super::super::figures::{count, counted, duration, rate, vtime};
use super::super::rated_finding::RatedFinding;
use super::super::span::{block, code, path, word};
use super::super::{Findable, Report};
use everett_explorer::run::Evidence;

/// Maximum number of findings in this section.
const FINDINGS_SHOWN_MAX: usize = 50;

pub(super) fn write(report: &Report) -> String {
    if report.findings.is_empty() {
        return String::new();
    }
    let (shown, more) = super::first(&report.findings, FINDINGS_SHOWN_MAX);
    let mut text = "## Findings\n".to_owned();
    for found in shown {
        text.push('\n');
        text.push_str(&finding(report, found));
    }
    if more > 0 {
        let _ = write!(text, "\nThe JSON report has {} more.\n", count(more));
    }
    text
}

fn finding(report: &Report, found: &RatedFinding) -> String {
    let RatedFinding { id, hit, first, branches, subtrees, findable, .. } = found;
    let node = hit.node.as_ref().map_or(String::new(), |node| format!(" on {}", code(node)));
    let mut text = format!("### {id}. {}\n\n", code(&hit.property));
    text += &block([hit.text.as_str()]);
    let _ = write!(
        text,
        "\n* at {}{node}, first in choice {first}, path {}\n* in {} of {}, and {} of {}\n",
        vtime(hit.vtime_ns),
        path(&found.path),
        count(*branches),
        counted(report.explored.branches, "branch", "branches"),
        count(*subtrees),
        counted(report.explored.subtrees, "subtree", "subtrees"),
    );
    text += &how_findable(findable);
    let Evidence { lines, packets, faults } = &hit.evidence;
    for (title, list) in [("Faults", faults), ("Lines", lines), ("Packets", packets)] {
        if !list.is_empty() {
            let _ = write!(text, "\n{title}:\n\n{}", block(list.iter().map(String::as_str)));
        }
    }
    let run = word(&report.run);
    let commands = [format!("everett replay {run} {id}"), format!("everett shrink {run} {id}")];
    let _ = write!(text, "\nTo reproduce it, and to reduce it to the fewest faults:\n\n");
    text + &block(commands.iter().map(String::as_str))
}

fn how_findable(findable: &Findable) -> String {
    let Findable { adaptive, first, cpu, instructions } = findable;
    let mut text = format!(
        "* first hit after {} of CPU time and {} instructions\n",
        duration(first.cpu_ns),
        count(first.instructions),
    );
    let label = if *adaptive { " (adaptive)" } else { "" };
    let mut means = Vec::new();
    let mut rates = Vec::new();
    let mut clean = Vec::new();
    means.extend(cpu.mean.filter(|mean| *mean > 0).map(|mean| format!("{} of CPU time", duration(mean))));
    means.extend(instructions.mean.map(|mean| format!("{} instructions", count(mean))));
    rates.extend(cpu.rate.map(|per_hour| format!("{} an hour of CPU time", rate(per_hour))));
    rates.extend(
        instructions.rate.map(|per_trillion| format!("{} in a trillion instructions", rate(per_trillion))),
    );
    clean.extend(cpu.clean.filter(|time| *time > 0).map(|time| format!("{} of CPU time", duration(time))));
    clean.extend(instructions.clean.map(|time| format!("{} instructions", count(time))));
    for (what, values, joint) in [
        ("rate", rates, ", "),
        ("mean time to a hit", means, " or "),
        ("time without a hit that shows a fix with 95 % confidence", clean, " or "),
    ] {
        if !values.is_empty() {
            let _ = writeln!(text, "* {what}{label}: {}", values.join(joint));
        }
    }
    text
}

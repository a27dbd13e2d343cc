//! Section on the exploration and its size.

use everett_input::units::write_duration_ns;

use super::super::Report;
use super::super::figures::{count, counted, duration};
use super::super::final_phases::told;
use super::super::span::{cell, code};

/// Maximum number of nodes in the list.
const NODES_SHOWN_MAX: usize = 16;

/// Describes the number of faults, and of power losses in which a disk lost unflushed writes.
fn faults(applied: u64, losses: u64) -> String {
    let applied = match applied {
        1 => "1 was applied".to_owned(),
        n => format!("{} were applied", count(n)),
    };
    match losses {
        0 => format!("{applied}; no disk lost unflushed writes"),
        n => format!("{applied}; disks lost unflushed writes {}", counted(n, "time", "times")),
    }
}

pub(super) fn write(report: &Report) -> String {
    let Report { header, explored, findings, end, missing, .. } = report;
    let found = match findings.len() as u64 {
        0 => "**Nothing was found**".to_owned(),
        n => format!("**{}**", counted(n, "finding", "findings")),
    };
    let state = match end {
        Some(end) => format!("The exploration ended: {}.", end.why.words()),
        None => "The exploration is running, or was killed and can be resumed.".to_owned(),
    };
    let mut text = format!(
        "# Exploration of {}\n\n{found} in {} of {}. {state}\n\n",
        code(&header.world_file),
        counted(explored.branches, "branch", "branches"),
        counted(explored.subtrees, "subtree", "subtrees"),
    );
    text.push_str(&format!("{}.\n\n", report.worth));
    if !header.exact {
        text.push_str(&format!(
            "**Inexact:** the engine {} was not proved exact on its host. Results may depend on the host and differ in \
             another run.\n\n",
            code(&header.engine)
        ));
    }
    let mut row = |name: &str, value: String| text.push_str(&format!("| {name} | {value} |\n"));
    row("", String::new());
    row("---", "---".to_owned());
    row(
        "explored",
        format!(
            "{} of vtime, {} instructions, {} of CPU time",
            duration(explored.vtime_ns),
            count(explored.cost.instructions),
            duration(explored.cost.cpu_ns),
        ),
    );
    row("executed", format!("{} instructions", count(explored.executed)));
    let broken = match missing.broken {
        0 => String::new(),
        n => format!("; {} broke", count(n)),
    };
    row("branches", format!("{}, {} with checks{broken}", count(explored.branches), count(explored.checked)));
    if let Some(told) = told(&explored.cost, &explored.final_phases) {
        row("checks", told);
    }
    row("faults", faults(explored.faults, explored.losses));
    row("seed", header.seed.to_string());
    row("strategy", format!("{}, {} branches in flight", cell(&header.strategy.0), header.in_flight));
    row(
        "time",
        format!(
            "root moment at {}, segments of {}, horizon {}",
            write_duration_ns(header.root_ns),
            write_duration_ns(header.segment_ns),
            write_duration_ns(header.horizon_ns),
        ),
    );
    let (nodes, more) = super::first(&header.nodes, NODES_SHOWN_MAX);
    let mut nodes: Vec<String> = nodes.iter().map(|name| cell(name)).collect();
    nodes.extend((more > 0).then(|| format!("{more} more")));
    row("nodes", nodes.join(", "));
    row("versions", format!("everett {}, machine {}", cell(&header.everett), cell(&header.machine_version)));
    row("image", cell(&header.image));
    row("identity", cell(&header.identity));
    text
}

#[cfg(test)]
mod tests {
    use super::faults;

    #[test]
    fn faults_and_losses_are_sentences() {
        assert_eq!(faults(89, 3), "89 were applied; disks lost unflushed writes 3 times");
        assert_eq!(faults(1, 1), "1 was applied; disks lost unflushed writes 1 time");
        assert_eq!(faults(0, 0), "0 were applied; no disk lost unflushed writes");
    }
}

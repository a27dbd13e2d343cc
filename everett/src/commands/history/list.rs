//! The list of recorded explorations.

use std::path::Path;

use everett_history::{Finding, History, Run, Status};
use everett_host::time;
use everett_input::units::show_duration_ns;
use serde::Serialize;

use crate::ui::{Ui, printable, style};

/// Number of runs that are listed without `--all`.
const RUNS_SHOWN_MAX: usize = 20;
const TITLES: [&str; 7] = ["begun", "seed", "branches", "vtime", "CPU", "findings", "run"];

/// JSON record that `everett runs --json` prints for a run.
#[derive(Serialize)]
pub(super) struct Line {
    kind: &'static str,
    #[serde(flatten)]
    run: Run,
    /// True if the run directory still holds the exploration.
    present: bool,
    /// Folder of the previous run. `None` if there is none or this run has not ended: only ended runs are compared.
    against: Option<String>,
    /// True if the world, an image or the machine version has changed since the previous run.
    changed: Option<bool>,
    /// Findings of the run, and findings that only the previous run had.
    found: Vec<ListedFinding>,
    #[serde(skip)]
    counts: String,
}

#[derive(Serialize)]
struct ListedFinding {
    /// Status relative to the previous run. `None` if there is no previous run.
    status: Option<Status>,
    #[serde(flatten)]
    finding: Finding,
}

impl Line {
    pub(super) fn of(history: &History, run: &Run) -> anyhow::Result<Line> {
        let compared = match run.ended_unix_s {
            Some(_) => history.compared(run)?,
            None => None,
        };
        let mut line = Line {
            kind: "run",
            run: run.clone(),
            present: super::is_there(run),
            against: None,
            changed: None,
            found: Vec::new(),
            counts: String::new(),
        };
        match compared {
            None => {
                let findings = history.findings(run)?.into_iter();
                line.found = findings.map(|finding| ListedFinding { status: None, finding }).collect();
            }
            Some(compared) => {
                line.counts = super::counted(&compared);
                line.against = Some(compared.before.folder);
                line.changed = Some(compared.changed);
                let findings = compared.findings.into_iter();
                line.found = findings
                    .map(|(status, finding)| ListedFinding { status: Some(status), finding })
                    .collect();
            }
        }
        Ok(line)
    }

    /// Returns the cells of the run's row in the table.
    fn cells(&self, now_s: u64) -> [String; 7] {
        let Run { seed, branches, vtime_ns, cpu_ns, findings, ended_unix_s, begun_unix_s, .. } = self.run;
        let mut found = match findings {
            0 => "none".to_owned(),
            findings => findings.to_string(),
        };
        if !self.counts.is_empty() {
            found += &format!(": {}", self.counts);
        }
        if ended_unix_s.is_none() {
            found += " (not ended)";
        }
        if self.changed == Some(true) {
            found += ", world changed";
        }
        let gone = if self.present { "" } else { "  (gone)" };
        [
            age(now_s.saturating_sub(begun_unix_s)),
            seed.to_string(),
            branches.to_string(),
            show_long_ns(vtime_ns),
            show_long_ns(cpu_ns),
            found,
            format!("{}{gone}", printable(&self.run.folder)),
        ]
    }
}

/// Lists the runs of a world file, or all runs, grouped by world.
pub(in crate::commands) fn list(ui: &Ui, world: Option<&Path>, all: bool) -> anyhow::Result<()> {
    let runs = match super::read()? {
        Some(history) => {
            let mut runs = super::recorded(&history, world)?;
            let count = runs.len();
            if !all {
                runs.truncate(RUNS_SHOWN_MAX);
            }
            let lines = runs.iter().map(|run| Line::of(&history, run)).collect::<anyhow::Result<Vec<_>>>()?;
            Some((lines, count)).filter(|_| count > 0)
        }
        None => None,
    };
    let Some((lines, count)) = runs else {
        return Ok(ui.say(match world {
            Some(world) => {
                format!("no exploration of {} is recorded", printable(&world.display().to_string()))
            }
            None => "no exploration is recorded".to_owned(),
        })?);
    };
    for line in &lines {
        ui.record(line)?;
    }
    // Worlds, ordered by their newest run.
    let mut worlds: Vec<&str> = Vec::new();
    for line in &lines {
        if !worlds.contains(&line.run.world.as_str()) {
            worlds.push(&line.run.world);
        }
    }
    let now_s = time::unix_s();
    for world in worlds {
        ui.say(style::paint(style::HEAD, printable(world)))?;
        let of_world = lines.iter().filter(|line| line.run.world == world);
        for row in table(of_world.map(|line| line.cells(now_s)).collect()) {
            ui.say(row)?;
        }
    }
    if count > lines.len() {
        ui.say(style::paint(style::FAINT, format!("{} more; --all lists them", count - lines.len())))?;
    }
    Ok(())
}

/// Returns the rows of a table with aligned columns. Numbers are aligned to the right.
fn table(rows: Vec<[String; 7]>) -> Vec<String> {
    let rows: Vec<_> = [TITLES.map(str::to_owned)].into_iter().chain(rows).collect();
    let mut widths = [0; 7];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            1..=4 => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Returns an age in words, such as `just now`, `5 min` or `3 days`.
pub(super) fn age(seconds: u64) -> String {
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Formats a duration that may be hours long.
fn show_long_ns(ns: u64) -> String {
    const MINUTE_NS: u64 = 60_000_000_000;
    match ns / MINUTE_NS {
        0..2 => show_duration_ns(ns),
        minutes @ 2..120 => format!("{minutes} min"),
        minutes => format!("{} h", minutes / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let row = ["2 h", "7", "1000", "3 h", "12 min", "none", "/runs/a"].map(str::to_owned);
        assert_eq!(
            table(vec![row]),
            [
                "begun  seed  branches  vtime     CPU  findings  run",
                "2 h       7      1000    3 h  12 min  none      /runs/a"
            ]
        );
    }

    #[test]
    fn durations_are_short() {
        let shown = [0, 90_000_000_000, 120_000_000_000, 7_200_000_000_000].map(show_long_ns);
        assert_eq!(shown, ["0 ns", "90 s", "2 min", "2 h"]);
    }
}

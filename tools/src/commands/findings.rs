//! `everett findings` and `everett report`: results of an exploration.

use std::fs;
use std::path::Path;

use anyhow::Context;
use everett_explorer::run::{Finding, RunError};
use everett_input::units::Vtime;
use serde::Serialize;

use super::Outcome;
use super::exploration::Run;
use crate::cli;
use crate::ui::{Ui, printable, style};

#[derive(Serialize)]
struct Record<'a> {
    kind: &'static str,
    id: u32,
    property: &'a str,
    signature: &'a str,
    text: &'a str,
    node: Option<&'a str>,
    vtime_ns: u64,
    branch: u64,
    path: String,
    branches: u64,
    subtrees: usize,
}

/// `everett findings`.
pub(super) fn list(ui: &Ui, args: &cli::RunFolder) -> anyhow::Result<Outcome> {
    let run = Run::read(&args.run)?;
    for finding in run.merged.findings() {
        tell(ui, finding)?;
    }
    if run.merged.findings().is_empty() {
        ui.say(style::paint(style::GOOD, format!("nothing found on {} branches", run.merged.branches())))?;
        return Ok(Outcome::Fine);
    }
    Ok(Outcome::Found)
}

/// Prints a finding in two lines.
pub(super) fn tell(ui: &Ui, finding: &Finding) -> anyhow::Result<()> {
    let hit = &finding.hit;
    ui.record(&Record {
        kind: "finding",
        id: finding.id,
        property: &hit.property,
        signature: &hit.signature,
        text: &hit.text,
        node: hit.node.as_deref(),
        vtime_ns: hit.vtime_ns,
        branch: finding.first,
        path: finding.path.to_string(),
        branches: finding.tally.branches,
        subtrees: finding.tally.subtrees.len(),
    })?;
    let place = hit.node.as_deref().map_or(String::new(), |node| format!(" on {}", printable(node)));
    let several = if finding.tally.branches == 1 {
        "on one branch".to_owned()
    } else {
        format!("on {} branches of {} subtrees", finding.tally.branches, finding.tally.subtrees.len())
    };
    ui.say(format!(
        "{} {}: {}",
        style::paint(style::BAD, format!("{:>3}", finding.id)),
        style::paint(style::HEAD, printable(&hit.property)),
        printable(&hit.text)
    ))?;
    let line = format!(
        "    at {} s{place}, first on branch {} ({}); {several}",
        Vtime(hit.vtime_ns).to_string().trim(),
        finding.first,
        finding.path
    );
    Ok(ui.say(style::paint(style::FAINT, line))?)
}

/// `everett report`.
pub(super) fn report(ui: &Ui, args: &cli::Report) -> anyhow::Result<Outcome> {
    let run = Run::read(&args.run)?;
    let report = run.report(&args.run.display().to_string());
    let outcome = if report.findings.is_empty() { Outcome::Fine } else { Outcome::Found };
    let Some(folder) = &args.output else {
        ui.record(&report)?;
        ui.say(report.markdown().trim_end())?;
        return Ok(outcome);
    };
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    write(&folder.join("report.md"), &report.markdown())?;
    write(&folder.join("report.json"), &(report.json()? + "\n"))?;
    ui.say(format!("{} and report.json", folder.join("report.md").display()))?;
    Ok(outcome)
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(file, text).with_context(|| file.display().to_string())
}

/// Returns true if a folder is a run directory.
pub(super) fn is_run(folder: &Path) -> Result<bool, RunError> {
    match everett_explorer::run::Header::read(folder) {
        Ok(_) => Ok(true),
        Err(RunError::NoRun(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

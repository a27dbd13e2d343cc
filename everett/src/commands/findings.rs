//! `everett findings`: lists the findings of an exploration.

use std::path::{Path, PathBuf};

use everett_explorer::property::violation_text::violation;
use everett_explorer::run::{Finding, Header, RunError};
use everett_input::units::Vtime;
use everett_report::scene::{Scene, story};
use serde::Serialize;

use super::Outcome;
use super::exploration::Run;
use crate::ui::{Ui, printable, style};

/// `everett findings`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run directory
    pub run: PathBuf,
    /// List all findings; by default only the first ones
    #[arg(long)]
    pub all: bool,
}

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

/// Number of findings that are listed without `--all`.
const FINDINGS_SHOWN_MAX: usize = 10;
/// Maximum length of a finding's text, in characters.
const LISTED_STORY_CHARS_MAX: usize = 600;

pub(super) fn list(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let run = Run::read(&args.run)?;
    if run.merged.findings().is_empty() {
        ui.say(style::paint(style::GOOD, format!("no finding on {} branches", run.merged.branches())))?;
        return Ok(Outcome::Fine);
    }
    tell_all(ui, &run, args.all)?;
    Ok(Outcome::Found)
}

/// Prints the first findings, or all of them.
pub(super) fn tell_all(ui: &Ui, run: &Run, all: bool) -> anyhow::Result<()> {
    let findings = run.merged.findings();
    // JSON output always has all findings.
    let shown = if all || ui.json { findings.len() } else { FINDINGS_SHOWN_MAX.min(findings.len()) };
    for finding in findings.iter().take(shown) {
        tell(ui, run.reading.header(), finding)?;
    }
    if findings.len() > shown {
        ui.say(style::paint(style::FAINT, format!("{} more; --all lists them", findings.len() - shown)))?;
    }
    Ok(())
}

/// Prints a finding: its property, what happened, and on which branches.
pub(super) fn tell(ui: &Ui, header: &Header, finding: &Finding) -> anyhow::Result<()> {
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
    let scene = Scene::of_hit(&header.nodes, hit);
    let violated = violation(&header.world, &hit.property);
    let mut told: String = story(&hit.property, &violated, &hit.text, &scene.faults)
        .chars()
        .take(LISTED_STORY_CHARS_MAX + 1)
        .collect();
    if told.chars().count() > LISTED_STORY_CHARS_MAX {
        told.pop();
        told.push('…');
    }
    ui.say(format!(
        "{} {}",
        style::paint(style::BAD, format!("{:>3}", finding.id)),
        style::paint(style::HEAD, printable(&hit.property)),
    ))?;
    ui.say(format!("    {}", printable(&told)))?;
    let line = format!(
        "    at {} s{place}, first on branch {}; {several}",
        Vtime(hit.vtime_ns).to_string().trim(),
        finding.first
    );
    Ok(ui.say(style::paint(style::FAINT, line))?)
}

/// True if a folder is a run directory.
pub(super) fn is_run(folder: &Path) -> Result<bool, RunError> {
    match everett_explorer::run::Header::read(folder) {
        Ok(_) => Ok(true),
        Err(RunError::NoRun(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

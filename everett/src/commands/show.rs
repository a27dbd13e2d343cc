//! `everett show`: shows a finding with its evidence, a branch, or the digest of an exploration.

use std::path::PathBuf;

use everett_explorer::run::{Evidence, FinalPhase, Finding, Hit, Record, Span};
use everett_input::units::{Vtime, show_duration_ns};
use everett_report::exploration::figures::duration;
use everett_report::exploration::final_phases::percent;
use everett_report::scene::Scene;
use everett_report::text;
use serde::Serialize;

use super::Outcome;
use super::exploration::Run;
use super::findings;
use super::id::Id;
use crate::ui::{Ui, printable, style};

/// `everett show`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run directory
    pub run: PathBuf,
    /// Number of a finding such as 1, or of a branch such as b17
    pub id: Option<Id>,
    /// Print all evidence of a finding, or all findings of a run
    #[arg(long)]
    pub all: bool,
    /// Print one digest of the tree of branches, the findings and the coverage
    #[arg(long, conflicts_with = "id")]
    pub digest: bool,
    /// Cover only the first N branches with the digest
    #[arg(long, value_name = "N", requires = "digest")]
    pub branches: Option<u64>,
}

/// Number of lines of evidence that are printed without `--all`.
const LINES_SHOWN_MAX: usize = 16;

#[derive(Serialize)]
struct Digest<'a> {
    kind: &'static str,
    branches: u64,
    digest: &'a str,
}

/// Line of `--json` that names the folder with the evidence of a finding.
#[derive(Serialize)]
struct Kept<'a> {
    kind: &'static str,
    folder: &'a str,
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    if args.digest {
        return digest(ui, args);
    }
    let run = Run::read(&args.run)?;
    match args.id {
        None => {
            let header = run.reading.header();
            ui.say(format!(
                "{}  {} branches under seed {}, strategy {}",
                printable(&header.world_file),
                run.merged.branches(),
                header.seed,
                header.strategy.0
            ))?;
            findings::tell_all(ui, &run, args.all)?;
        }
        Some(Id::Finding(id)) => {
            let finding = run.finding(id)?;
            findings::tell(ui, run.reading.header(), finding)?;
            match args.all {
                true => evidence(ui, &finding.hit.evidence)?,
                false => telling(ui, &run, finding)?,
            }
            ui.say(format!("\neverett replay {} {id}    runs the finding again", args.run.display()))?;
            if !args.all {
                ui.say(format!(
                    "everett show {} {id} --all    prints all lines, messages and faults before it",
                    args.run.display()
                ))?;
            }
            // The folder is missing if the exploration was killed before it stored the evidence as files.
            if let Some(folder) = run.reading.evidence_of(id) {
                let folder = folder.display().to_string();
                ui.record(&Kept { kind: "evidence", folder: &folder })?;
                ui.say(format!("{folder}    has the evidence as files"))?;
            }
        }
        Some(id @ Id::Branch(_)) => branch(ui, &run.record(id)?)?,
    }
    Ok(Outcome::Fine)
}

fn digest(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let mut run = Run::read(&args.run)?;
    if let Some(branches) = args.branches {
        run.merged = run.reading.merged(branches)?;
    }
    let (branches, digest) = (run.merged.branches(), run.merged.digest().to_hex().to_string());
    ui.record(&Digest { kind: "digest", branches, digest: &digest })?;
    ui.say(format!("{digest}  {branches} branches"))?;
    Ok(Outcome::Fine)
}

/// Returns a clause with the cost of a branch's final phase, in which the world comes to rest and the checks run. Empty
/// if the branch had none.
fn final_phase(record: &Record) -> String {
    let Some(FinalPhase { calm, checks }) = record.final_phase else { return String::new() };
    let part = |span: Span| {
        let share = percent(span.instructions, record.instructions).unwrap_or(0.0);
        format!("{share:.0} % in {}", duration(span.vtime_ns))
    };
    format!(" ({} until the world was at rest, {} for checks)", part(calm), part(checks))
}

fn branch(ui: &Ui, record: &Record) -> anyhow::Result<()> {
    ui.record(record)?;
    ui.say(format!("{}  {}", style::paint(style::HEAD, format!("branch {}", record.choice)), record.path))?;
    let from = record.from.map_or("the root moment".to_owned(), |from| format!("branch {from}"));
    let open = if record.open_ns.is_some() {
        "branches can continue from its end"
    } else {
        "no branch continues from its end"
    };
    ui.say(format!(
        "    from {from}, {} to {} s; {open}{}",
        show_duration_ns(record.vtime_ns()),
        Vtime(record.end_ns).to_string().trim(),
        if record.checked { "; its checks were run" } else { "" }
    ))?;
    ui.say(format!(
        "    {} instructions{}, {} faults, {} points of coverage; trail {}",
        record.instructions,
        final_phase(record),
        record.faults,
        record.delta.points().count(),
        record.trail
    ))?;
    if let Some(why) = &record.broken {
        ui.say(style::paint(style::NOTE, format!("    ended early: {}", printable(why))))?;
    }
    for hit in &record.hits {
        let Hit { property, text, vtime_ns, .. } = hit;
        let line = format!("    {} {}: {}", Vtime(*vtime_ns), printable(property), printable(text));
        ui.say(style::paint(style::BAD, line))?;
    }
    Ok(())
}

/// Prints the most important lines of a finding's evidence.
fn telling(ui: &Ui, run: &Run, finding: &Finding) -> anyhow::Result<()> {
    let scene = Scene::of_hit(&run.reading.header().nodes, &finding.hit);
    ui.say("")?;
    for line in text::of_scene(&scene, LINES_SHOWN_MAX) {
        ui.say(match line.starts_with("  >") {
            true => style::paint(style::BAD, line),
            false => line,
        })?;
    }
    Ok(())
}

/// Prints all evidence of a finding: faults, messages and output before it.
fn evidence(ui: &Ui, evidence: &Evidence) -> anyhow::Result<()> {
    let parts = [
        ("faults before it", &evidence.faults),
        ("messages before it", &evidence.packets),
        ("output before it", &evidence.lines),
    ];
    for (title, lines) in parts.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        ui.say(format!("\n{}", style::paint(style::HEAD, title)))?;
        for line in lines {
            ui.say(format!("    {}", printable(line)))?;
        }
    }
    Ok(())
}

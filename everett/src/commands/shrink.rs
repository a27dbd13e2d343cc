//! `everett shrink`: finds the fewest faults that still show a finding, and writes them to a regression file.

use std::path::{Path, PathBuf};

use anyhow::Context;
use everett_explorer::plan::What;
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::file::folder_of;
use everett_input::units::{self, Vtime, show_duration_ns};
use everett_session::explore::regression::Regression;
use everett_session::explore::setting::Setting;
use everett_session::explore::shrink::{
    Limits, ShrinkEnd, ShrinkProgress, ShrinkStep, Shrunk, Wanted, shrink,
};
use serde::Serialize;

use super::engine_choice::EngineArgs;
use super::exploration::Run;
use super::{Outcome, common, resources};
use crate::ui::progress::ShrinkBar;
use crate::ui::{Ui, printable, style};

/// `everett shrink`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run directory
    pub run: PathBuf,
    /// Number of the finding
    pub id: u32,
    /// Stop after this much host time with the best plan so far; the regression file then says that it is not minimal
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub budget: Option<u64>,
    /// Number of runs in parallel [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// The regression file to write [default: regression-ID.json in the run directory]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Engine
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Line of `--json` for each smaller plan.
#[derive(Serialize)]
struct Better {
    kind: &'static str,
    step: ShrinkStep,
    faults: usize,
    runs: u64,
}

#[derive(Serialize)]
struct Summary<'a> {
    kind: &'static str,
    path: String,
    /// Reason why the search ended. `minimal` means that the finding needs each fault of the plan. The other reasons do
    /// not promise this.
    why: ShrinkEnd,
    /// Error of the run that ended the search.
    failure: Option<String>,
    faults_before: usize,
    faults: usize,
    runs: u64,
    property: &'a str,
    text: &'a str,
    trail: &'a str,
    file: String,
    host_seconds: f64,
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let run = Run::open(&args.run)?;
    let finding = run.finding(args.id)?.clone();
    let (setting, engine) = run.setting(ui, args.engine.asked(), &interrupt)?;
    let file = match &args.output {
        Some(file) => file.clone(),
        None => args.run.join(format!("regression-{}.json", args.id)),
    };
    let workers = args.jobs.map_or_else(resources::cores, usize::from);
    let wanted = Wanted::of(&finding.hit);
    let clock = Stopwatch::start();
    let limits = Limits { workers, host_ns: args.budget, interrupt: &interrupt };
    let shrunk = shrunk(ui, &setting, &finding.path, &wanted, &limits)?;
    write(ui, &setting, &shrunk, &file, &clock)?;
    common::warn_of_engine(ui, &engine)?;
    Ok(Outcome::Found)
}

/// Shrinks a finding while a progress bar shows.
pub(super) fn shrunk(
    ui: &Ui,
    setting: &Setting,
    path: &everett_explorer::search::Path,
    wanted: &Wanted,
    limits: &Limits<'_>,
) -> anyhow::Result<Shrunk> {
    let bar = ShrinkBar::new(ui, limits.host_ns);
    let (mut better, mut failed) = (0, None);
    let told = &mut |progress: &ShrinkProgress| {
        bar.at(progress);
        if progress.better > better {
            better = progress.better;
            let ShrinkProgress { step, faults, runs, .. } = *progress;
            let told = bar.suspend(|| ui.record(&Better { kind: "better", step, faults, runs }));
            failed = failed.take().or(told.err());
        }
    };
    let shrunk = shrink(setting, path, wanted, limits, told);
    bar.clear();
    match failed {
        Some(error) => Err(error.into()),
        None => shrunk,
    }
}

/// Prints the result and writes the regression file.
pub(super) fn write(
    ui: &Ui,
    setting: &Setting,
    shrunk: &Shrunk,
    file: &Path,
    clock: &Stopwatch,
) -> anyhow::Result<()> {
    Regression::of(setting, shrunk, folder_of(file))?.write(file)?;
    let plan = shrunk.route.plan.as_ref().context("the shrunk route has no plan")?;
    let faults = plan.entries().iter().filter(|entry| matches!(entry.what, What::Fault(_))).count();
    let hit = &shrunk.found.hit;
    ui.record(&Summary {
        kind: "shrunk",
        path: setting.name(&shrunk.route.path),
        why: shrunk.why,
        failure: shrunk.failed.clone(),
        faults_before: shrunk.faults_before,
        faults,
        runs: shrunk.runs,
        property: &hit.property,
        text: &hit.text,
        trail: &shrunk.trail,
        file: file.display().to_string(),
        host_seconds: clock.seconds(),
    })?;
    ui.say(format!(
        "{} of {} faults remain after {} runs in {:.1} s:",
        style::paint(style::HEAD, faults),
        shrunk.faults_before,
        shrunk.runs,
        clock.seconds()
    ))?;
    let cut = match shrunk.why {
        ShrinkEnd::Minimal => None,
        ShrinkEnd::Budget => Some("the time budget ran out".to_owned()),
        ShrinkEnd::Interrupted => Some("the search was interrupted".to_owned()),
        ShrinkEnd::Failed => shrunk.failed.clone(),
    };
    if let Some(cut) = cut {
        let cut = printable(&cut);
        let line = format!("{cut}, so this plan may not be minimal: fewer or shorter faults may be enough");
        ui.say(style::paint(style::NOTE, line))?;
    }
    for line in plan.write().lines() {
        ui.say(format!("    {}", printable(line)))?;
    }
    let at = Vtime(hit.vtime_ns).to_string();
    ui.say(format!(
        "{} at {} s: {}",
        style::paint(style::BAD, printable(&hit.property)),
        at.trim(),
        printable(&hit.text)
    ))?;
    let end = shrunk.route.end.map_or(0, |end| end.at_ns.saturating_sub(setting.root_ns));
    let forks = match shrunk.route.path.forks().len() {
        0 => format!("this is a run without forks, {} long", show_duration_ns(end)),
        1 => "this timeline forks once".to_owned(),
        n => format!("this timeline forks {n} times"),
    };
    ui.say(format!("{forks}; everett replay {} runs it again", file.display()))?;
    Ok(())
}

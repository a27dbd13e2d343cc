//! `everett coverage`: finds the functions and source lines of programs that an exploration reached, for the report.

use std::path::PathBuf;

use anyhow::bail;
use everett_explorer::reached_code::{FILE, FindingCode, KERNEL, Program, ReachedCode, ReplaysEnd};
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::units;
use everett_report::exploration::figures::counted;
use everett_report::reached_code as words;
use everett_session::explore::reached_code::{Options, reached_code};
use everett_session::machines::EngineKind;
use everett_session::output::replace::replace;
use serde::Serialize;

use super::super::engine_choice::EngineArgs;
use super::super::exploration::Run;
use super::super::{Outcome, common, resources};
use super::debug_files::DebugFilesArgs;
use crate::ui::progress::RunBar;
use crate::ui::{Ui, printable, style};

/// `everett coverage`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Everett replays the branches of the exploration once more and records executed jumps, which takes about one and a half times \
                        as long as the exploration. The result is reached-code.json in the run directory, which the report shows."
)]
pub struct Args {
    /// The run directory
    pub run: PathBuf,
    /// Replay only this number of branches, the first ones [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub branches: Option<u64>,
    /// Stop after this much host time; the result then has the branches so far
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub budget: Option<u64>,
    /// Number of branches that are replayed in parallel [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Debug files
    #[command(flatten)]
    pub debug: DebugFilesArgs,
    /// Engine
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Maximum number of programs that the printed summary lists.
const PROGRAMS_SHOWN_MAX: usize = 10;
/// Maximum number of places that the printed summary lists for a finding.
const PLACES_SHOWN_MAX: usize = 10;

/// Line of `--json` for a program.
#[derive(Serialize)]
struct ProgramLine<'a> {
    kind: &'static str,
    #[serde(flatten)]
    program: &'a Program,
}

/// Line of `--json` for a finding.
#[derive(Serialize)]
struct FindingLine<'a> {
    kind: &'static str,
    #[serde(flatten)]
    finding: &'a FindingCode,
}

/// Last line of `--json`.
#[derive(Serialize)]
struct Summary {
    kind: &'static str,
    branches: u64,
    branches_all: u64,
    passing: u64,
    why: ReplaysEnd,
    programs: u64,
    file: String,
    host_seconds: f64,
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let debug = args.debug.folders()?;
    let interrupt = Interrupt::install()?;
    let run = Run::open(&args.run)?;
    let (setting, engine) = run.setting(ui, args.engine.asked(), &interrupt)?;
    if engine.kind == EngineKind::Kvm {
        bail!("/dev/kvm cannot observe single instructions; use --engine soft, which runs the same branches");
    }
    let options = Options {
        branches: args.branches.unwrap_or(u64::MAX),
        host_ns: args.budget,
        workers: args.jobs.map_or_else(resources::cores, usize::from),
        debug,
        interrupt: &interrupt,
    };
    let clock = Stopwatch::start();
    let bar = RunBar::endless(ui, "replaying");
    let code = reached_code(&setting, &run.reading, &run.merged, &options, &mut |done, all| {
        bar.say(&format!("{done} of {}", counted(all, "branch", "branches")));
    });
    bar.clear();
    let code = code?;
    let file = args.run.join(FILE);
    replace(&file, &code.json()?)?;
    for program in &code.programs {
        ui.record(&ProgramLine { kind: "program", program })?;
    }
    for finding in &code.findings {
        ui.record(&FindingLine { kind: "finding", finding })?;
    }
    ui.record(&Summary {
        kind: "coverage",
        branches: code.branches,
        branches_all: code.branches_all,
        passing: code.passing,
        why: code.why,
        programs: code.programs_count,
        file: file.display().to_string(),
        host_seconds: clock.seconds(),
    })?;
    tell(ui, &code)?;
    let name = args.run.display();
    let line =
        format!("{}; everett report {name} --html shows it, after {:.1} s", file.display(), clock.seconds());
    ui.say(style::paint(style::FAINT, line))?;
    common::warn_of_engine(ui, &engine)?;
    Ok(Outcome::Fine)
}

/// Prints a summary for people.
fn tell(ui: &Ui, code: &ReachedCode) -> anyhow::Result<()> {
    ui.say(style::paint(style::HEAD, words::sentence(code)))?;
    for program in code.programs.iter().take(PROGRAMS_SHOWN_MAX) {
        ui.say(format!("  {}", printable(&words::program(program))))?;
    }
    // The kernel is the last program.
    if let Some(kernel) = code.programs.iter().skip(PROGRAMS_SHOWN_MAX).find(|program| program.path == KERNEL)
    {
        ui.say(format!("  {}", printable(&words::program(kernel))))?;
    }
    for finding in &code.findings {
        let line = words::finding(finding);
        ui.say(style::paint(style::HEAD, printable(&line)))?;
        for place in finding.places.iter().take(PLACES_SHOWN_MAX) {
            ui.say(format!("  {}", printable(&words::place(place, finding.branches))))?;
        }
        let more = finding.places_count.saturating_sub(PLACES_SHOWN_MAX as u64);
        if more > 0 {
            ui.say(format!("  and {more} more, in the file"))?;
        }
    }
    Ok(())
}

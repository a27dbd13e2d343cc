//! `everett causality`: the step of a finding's timeline at which the finding became likely.

use std::path::{Path, PathBuf};

use everett_explorer::causality::search::Limits;
use everett_explorer::causality::{Causality, Vary};
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_report::causality as words;
use everett_session::engines::Asked;
use everett_session::explore::causality::{Onlooker, Options, Progress, causality};
use everett_session::explore::replay::Recorded;
use serde::Serialize;

use super::exploration::Run;
use super::{Outcome, common, explore, report};
use crate::cli::{self, Id};
use crate::ui::progress::CausalityBar;
use crate::ui::{Ui, printable, style};

/// Last line of `--json`.
#[derive(Serialize)]
struct Summary<'a> {
    kind: &'static str,
    #[serde(flatten)]
    causality: &'a Causality,
    failure: Option<String>,
    file: String,
    host_seconds: f64,
}

pub(super) use everett_explorer::causality::result::FILE_BYTES_MAX;

/// Returns the file of a finding's causality in a run directory.
pub(super) fn file_of(run: &Path, finding: u32) -> PathBuf {
    run.join(format!("causality-{finding}.json"))
}

pub(super) fn run(ui: &Ui, asked: Asked, args: &cli::Causality) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let run = Run::open(&args.run)?;
    let finding = run.finding(args.id)?.clone();
    let record = run.record(Id::Finding(args.id))?;
    let recorded = Recorded::of(&run.reading, &record)?;
    let (setting, engine) = run.setting(ui, asked, &interrupt)?;
    let file = file_of(&args.run, args.id);
    // The error is between 0.01 and 50 percent, so the cast is exact enough.
    let limits = Limits { futures: args.branches, error_ppm: (args.error * 10_000.0) as u32 };
    let options = Options {
        vary: if args.same_faults { Vary::Streams } else { Vary::All },
        limits,
        workers: args.jobs.map_or_else(explore::cores, usize::from),
        host_ns: args.budget,
        memory_bytes: args.memory.unwrap_or_else(explore::default_memory),
        interrupt: &interrupt,
    };
    let clock = Stopwatch::start();
    let mut keeper = Keeper { bar: CausalityBar::new(ui, args.budget), file: &file };
    let result = causality(&setting, &finding, &recorded, &options, &mut keeper);
    keeper.bar.clear();
    let (result, failed) = result?;
    let failure = failed.map(|error| format!("{error:#}"));
    ui.record(&Summary {
        kind: "causality",
        causality: &result,
        failure: failure.clone(),
        file: file.display().to_string(),
        host_seconds: clock.seconds(),
    })?;
    for (number, line) in words::lines(&result).into_iter().enumerate() {
        ui.say(if number == 0 { style::paint(style::HEAD, line) } else { line })?;
    }
    if let Some(failure) = failure {
        ui.say(style::paint(style::NOTE, printable(&failure)))?;
    }
    ui.say(format!("{} futures in {:.1} s: {}", result.futures, clock.seconds(), result.why.words()))?;
    ui.say(format!("digest {}", result.digest))?;
    ui.say(style::paint(
        style::FAINT,
        format!("{}; everett report {} --html shows it", file.display(), args.run.display()),
    ))?;
    common::warn_of_engine(ui, &engine)?;
    Ok(Outcome::Found)
}

/// Shows the progress, and writes each result.
struct Keeper<'k> {
    bar: CausalityBar,
    file: &'k Path,
}

impl Onlooker for Keeper<'_> {
    fn at(&mut self, progress: &Progress) {
        self.bar.at(progress);
    }

    fn keep(&mut self, causality: &Causality) -> anyhow::Result<()> {
        report::replace(self.file, &causality.json()?)
    }
}

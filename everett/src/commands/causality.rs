//! `everett causality`: finds the step of a finding's timeline at which the finding became likely. A step is an event,
//! such as a message, a fault or a line of output.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use everett_explorer::causality::search::{FUTURES_MAX, Limits};
use everett_explorer::causality::{Causality, Vary};
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::causes::with_causes;
use everett_input::units::{self, Vtime};
use everett_report::causality as words;
use everett_report::exploration::figures::counted;
use everett_session::explore::causality::{CausalityProgress, Onlooker, OpenNames, Options, causality};
use everett_session::explore::replay::Recorded;
use everett_session::output::replace::replace;
use everett_session::run::edges::table::Names;
use everett_session::run::launch::Launcher;
use serde::Serialize;

use super::engine_choice::EngineArgs;
use super::exploration::Run;
use super::id::Id;
#[cfg(feature = "inside")]
use super::inside::debug_files::DebugFilesArgs;
use super::{Outcome, common, resources};
use crate::ui::progress::CausalityBar;
use crate::ui::{Ui, printable, style};

/// `everett causality`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Everett runs futures from vtimes before the finding. They share its past, and draw their own random streams and faults. The share that \
                        shows the finding is its likelihood there. The result is causality-ID.json in the run directory, which \
                        the report shows. docs/causality.md says more."
)]
pub struct Args {
    /// The run directory
    pub run: PathBuf,
    /// Number of the finding
    pub id: u32,
    /// Stop after this much host time; the result is then the narrowest interval that probably holds the step
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub budget: Option<u64>,
    /// Stop after this number of futures; the result is then the narrowest interval that probably holds the step
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=FUTURES_MAX))]
    pub branches: u64,
    /// Keep the finding's faults in all futures, so that only random streams differ
    #[arg(long)]
    pub same_faults: bool,
    /// Accepted probability, in percent, that the named step is the wrong one
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = parse_error)]
    pub error: f64,
    /// Number of futures that run in parallel [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Memory for moments [default: a quarter of the host's memory]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size_bytes)]
    pub memory: Option<u64>,
    /// Debug files
    #[cfg(feature = "inside")]
    #[command(flatten)]
    pub debug: DebugFilesArgs,
    /// Engine
    #[command(flatten)]
    pub engine: EngineArgs,
}

impl Args {
    /// Returns a function that opens the names of executed code, with the lines of debug files if the build reads them.
    fn names(&self) -> anyhow::Result<impl Fn(&Launcher) -> anyhow::Result<Names>> {
        #[cfg(feature = "inside")]
        let debug = self.debug.folders()?;
        Ok(move |launcher: &Launcher| {
            #[cfg(feature = "inside")]
            let names = Names::with_debug_files(launcher, debug.clone())?;
            #[cfg(not(feature = "inside"))]
            let names = Names::of(launcher)?;
            Ok(names)
        })
    }
}

/// Parses the value of `--error`, in percent.
fn parse_error(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim_end().parse::<f64>() {
        Ok(percent) if (0.01..=50.0).contains(&percent) => Ok(percent),
        _ => Err("the error must be a number from 0.01 to 50, in percent".to_owned()),
    }
}

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

/// Returns the path of a finding's causality file in a run directory.
pub(super) fn file_of(run: &Path, finding: u32) -> PathBuf {
    run.join(format!("causality-{finding}.json"))
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let names = args.names()?;
    let interrupt = Interrupt::install()?;
    let run = Run::open(&args.run)?;
    let finding = run.finding(args.id)?.clone();
    let record = run.record(Id::Finding(args.id))?;
    let recorded = Recorded::of(&run.reading, &record)?;
    let (setting, engine) = run.setting(ui, args.engine.asked(), &interrupt)?;
    let file = file_of(&args.run, args.id);
    // Parts per million of at most 50 percent fit into a `u32`.
    let limits = Limits { futures: args.branches, error_ppm: (args.error * 10_000.0) as u32 };
    let options = Options {
        vary: if args.same_faults { Vary::Streams } else { Vary::All },
        limits,
        workers: args.jobs.map_or_else(resources::cores, usize::from),
        host_ns: args.budget,
        memory_bytes: args.memory.unwrap_or_else(resources::default_memory),
        interrupt: &interrupt,
        names: OpenNames(&names),
    };
    let clock = Stopwatch::start();
    let mut keeper = Keeper {
        ui,
        bar: CausalityBar::new(ui, args.budget),
        file: &file,
        clock,
        told_s: 0.0,
        futures_max: args.branches,
        interim: String::new(),
    };
    let result = causality(&setting, &finding, &recorded, &options, &mut keeper);
    keeper.bar.clear();
    let (result, failed) = result?;
    let failure = failed.map(|error| with_causes(error.as_ref()));
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

/// Shows the progress, and writes each interim result to the file.
struct Keeper<'k> {
    ui: &'k Ui,
    bar: CausalityBar,
    file: &'k Path,
    clock: Stopwatch,
    /// Time at which the last line was printed, in seconds since the start.
    told_s: f64,
    futures_max: u64,
    /// Result of the last batch in words; empty before the first one.
    interim: String,
}

/// Interval between two lines of progress on a terminal without a bar, in seconds.
const LINES_EVERY_S: f64 = 10.0;

impl Keeper<'_> {
    fn line(&self, progress: &CausalityProgress) -> String {
        let seconds = self.clock.seconds();
        match *progress {
            CausalityProgress::Replaying(vtime_ns) => {
                let at = Vtime(vtime_ns).to_string();
                format!("causality: replaying the finding, {} s of vtime after {seconds:.0} s", at.trim())
            }
            CausalityProgress::Futures { futures, .. } => {
                let left = self.futures_max.saturating_sub(futures) as f64;
                let most_min = left * seconds / (futures as f64).max(1.0) / 60.0;
                format!(
                    "causality: {futures} futures after {seconds:.0} s{}; at most {most_min:.0} min more",
                    self.interim
                )
            }
        }
    }
}

/// Returns the interim result of a search as a clause that ends a line of progress.
fn interim(causality: &Causality) -> String {
    match &causality.jump {
        None => ", no jump so far".to_owned(),
        Some(jump) => format!(
            ", so far a jump between {} s and {} s ({:.0} %, {})",
            words::exact(jump.from_ns),
            words::exact(jump.to_ns),
            f64::from(jump.probability_ppm) / 1e4,
            counted(jump.steps_count, "step", "steps"),
        ),
    }
}

impl Onlooker for Keeper<'_> {
    fn at(&mut self, progress: &CausalityProgress) {
        self.bar.at(progress);
        if !self.ui.bars && self.clock.seconds() - self.told_s >= LINES_EVERY_S {
            self.told_s = self.clock.seconds();
            // The error is ignored: the search goes on even if standard error is closed.
            let _ = writeln!(std::io::stderr(), "{}", self.line(progress));
        }
    }

    fn keep(&mut self, causality: &Causality) -> anyhow::Result<()> {
        self.interim = interim(causality);
        replace(self.file, &causality.json()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_progress_say_how_far_it_is() {
        let ui = Ui { json: true, bars: false };
        let keeper = Keeper {
            ui: &ui,
            bar: CausalityBar::new(&ui, None),
            file: Path::new("x"),
            clock: Stopwatch::start(),
            told_s: 0.0,
            futures_max: 2_000,
            interim: ", no jump so far".to_owned(),
        };
        let line = keeper.line(&CausalityProgress::Futures { futures: 64, between: None });
        assert!(line.starts_with("causality: 64 futures after 0 s, no jump so far; at most "), "{line}");
        let line = keeper.line(&CausalityProgress::Replaying(1_500_000_000));
        assert!(line.starts_with("causality: replaying the finding, 1.5"), "{line}");
    }
}

//! `everett runs`: the history of explorations.
//!
//! - `list`: the table, and the records of `--json`; `prune`: which runs are removed; `removal`: removal of a run
//!   directory
//! - `export`, `import`: a finding as one file
//!
//! Not here: the database (`everett_history`), and the records that explorations make (`super::history`).

mod export;
mod import;
mod list;
mod prune;
mod removal;

use std::path::{Path, PathBuf};

use everett_history::History;
use everett_history::run::Run;

use super::Outcome;
use super::exploration;
use super::history;
use crate::ui::{Ui, printable};

/// `everett runs`
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Each exploration records itself in the history, which is one file in the cache. docs/runs.md says more."
)]
pub struct Args {
    /// The command; without one, the recorded explorations are listed
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
    /// List only explorations of this world file
    pub world: Option<PathBuf>,
    /// List all explorations, not only the newest ones
    #[arg(long)]
    pub all: bool,
}

/// `everett runs …`
#[derive(Debug, clap::Subcommand)]
pub enum RunsCommand {
    /// Record the explorations in run directories, or update their records
    Add {
        /// The run directories
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<PathBuf>,
    },
    /// Write a finding with everything that replays it elsewhere into one file
    ///
    /// The file has the world, what its file names, the lock, the records and the evidence; `everett replay FILE` runs
    /// it again on any host.
    Export {
        /// The run directory
        run: PathBuf,
        /// Number of the finding
        id: u32,
        /// The file to write
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Carry the kernel and the root file systems, too: for a replay without a network, of images that only this
        /// host has, and of packages that an archive has dropped
        #[arg(long)]
        with_images: bool,
    },
    /// Unpack a finding file into a run directory with its world, for all commands
    Import {
        /// The finding file
        file: PathBuf,
        /// The run directory, which must not exist, or be empty [default: the name of the file without its end]
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Remove old run directories and their records; never one in which a process explores
    ///
    /// In a run directory, only files that Everett wrote are removed.
    Prune {
        /// Prune only explorations of this world file
        world: Option<PathBuf>,
        /// Keep the newest N explorations of each world
        #[arg(long, value_name = "N", required_unless_present_any = ["older_than", "gone"])]
        keep: Option<usize>,
        /// Keep explorations that began later than this long ago, such as 12h or 7d
        #[arg(long, value_name = "AGE", value_parser = super::age::parse_age_ns)]
        older_than: Option<u64>,
        /// Remove only records whose run directory is gone
        #[arg(long, conflicts_with_all = ["keep", "older_than"])]
        gone: bool,
        /// Remove nothing; list what would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

/// `everett runs`.
pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    match &args.command {
        None => list::list(ui, args.world.as_deref(), args.all),
        Some(RunsCommand::Add { runs }) => add(ui, runs),
        Some(RunsCommand::Export { run, id, output, with_images }) => {
            export::export(ui, run, *id, output, *with_images)
        }
        Some(RunsCommand::Import { file, output }) => import::import(ui, file, output.as_deref()),
        Some(RunsCommand::Prune { world, keep, older_than, gone, dry_run }) => {
            let bounds =
                prune::Bounds { keep: *keep, older_than_ns: *older_than, gone: *gone, dry_run: *dry_run };
            prune::prune(ui, world.as_deref(), &bounds)
        }
    }
    .map(|()| Outcome::Fine)
}

/// Records the explorations in run directories.
fn add(ui: &Ui, folders: &[PathBuf]) -> anyhow::Result<()> {
    let file = history::file()?;
    for folder in folders {
        let exploration::Run { reading, merged } = exploration::Run::read(folder)?;
        let mut history = History::open(&file)?;
        let run = history::add(&mut history, folder, reading.header(), &merged, reading.end())?;
        ui.record(&list::Line::of(&history, &run)?)?;
        ui.say(format!("recorded {}", printable(&run.folder)))?;
    }
    Ok(())
}

/// Returns the runs of a world file, or of all, the newest first.
fn recorded(history: &History, world: Option<&Path>) -> anyhow::Result<Vec<Run>> {
    let world = world.map(history::absolute).transpose()?;
    Ok(history.runs(world.as_deref(), everett_history::run::RUNS_MAX)?)
}

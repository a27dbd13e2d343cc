//! `everett runs`: its arguments, and finding files.
//!
//! - `export`, `import`: a finding as one file
//!
//! Not here: the list, the records and `prune` (`super::history`, or `super::no_history`).

mod export;
mod import;

use std::path::PathBuf;

use super::Outcome;
use super::history;
use super::prune_args::PruneArgs;
use crate::ui::Ui;

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
    Prune(PruneArgs),
}

/// `everett runs`.
pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    match &args.command {
        None => history::list(ui, args.world.as_deref(), args.all),
        Some(RunsCommand::Add { runs }) => history::add(ui, runs),
        Some(RunsCommand::Export { run, id, output, with_images }) => {
            export::export(ui, run, *id, output, *with_images)
        }
        Some(RunsCommand::Import { file, output }) => import::import(ui, file, output.as_deref()),
        Some(RunsCommand::Prune(args)) => history::prune(ui, args),
    }
    .map(|()| Outcome::Fine)
}

//! `everett runs`: its arguments and its subcommands.
//!
//! - `export`: packs a finding into one file
//! - `import`: unpacks a finding file
//!
//! Not here: the commands that print, extend and prune the history, i.e. the list of recorded explorations. They are in
//! `super::history`, or in `super::no_history` in builds without the history.

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
    after_help = "Each exploration records itself in the history, a file in the cache. See docs/runs.md."
)]
pub struct Args {
    /// The command; by default the recorded explorations are listed
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
    /// List only explorations of this world file
    pub world: Option<PathBuf>,
    /// List all explorations; by default only the newest ones
    #[arg(long)]
    pub all: bool,
}

/// `everett runs …`
#[derive(Debug, clap::Subcommand)]
pub enum RunsCommand {
    /// Record the explorations in these run directories, or update their records
    Add {
        /// The run directories
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<PathBuf>,
    },
    /// Write a finding, with everything that replays it elsewhere, into one file
    ///
    /// The file contains the world with all files that it needs, the records and the evidence. `everett replay FILE`
    /// runs the finding again on any x86-64 Linux host.
    Export {
        /// The run directory
        run: PathBuf,
        /// Number of the finding
        id: u32,
        /// The file to write
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Include the kernel and the root file systems; needed for replays without a network, for images that only
        /// this host has, and for packages that mirrors have dropped
        #[arg(long)]
        with_images: bool,
    },
    /// Unpack a finding file into a run directory with its world; all commands accept this directory
    Import {
        /// The finding file
        file: PathBuf,
        /// The run directory, a new or empty folder [default: the name of the file without its extension]
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Remove old run directories and their records, except directories in which an exploration is running
    ///
    /// Everett removes only files that it wrote itself.
    Prune(PruneArgs),
}

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

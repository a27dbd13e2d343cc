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
use crate::cli::{self, RunsCommand};
use crate::ui::{Ui, printable};

/// `everett runs`.
pub(super) fn run(ui: &Ui, args: &cli::Runs) -> anyhow::Result<Outcome> {
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

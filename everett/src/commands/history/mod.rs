//! Records explorations in the history of runs, and finds older runs of a world there.
//!
//! - this file: writing and reading records
//! - `list`: table and JSON records of `everett runs`
//! - `prune`: chooses and removes runs for `everett runs prune`
//! - `removal`: deletes the files that Everett wrote to a run directory
//!
//! An exploration goes on if its record cannot be written: the history is only an index, and the run directory holds
//! the results.

mod list;
mod prune;
mod removal;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use everett_explorer::run::{ExplorationEnd, Header, Merged};
use everett_guest_image::Cache;
use everett_history::{Compared, Finding, History, Run, Status};
use everett_host::time;
use everett_input::causes::with_causes;
use everett_session::explore::expedition::Limits;

use super::exploration;
use crate::ui::{Ui, printable, style};

pub(super) use list::list;
pub(super) use prune::prune;

/// Name of the database file in the cache's folder.
const FILE: &str = "history.sqlite";

fn file() -> anyhow::Result<PathBuf> {
    Ok(Cache::of_user()?.folder().join(FILE))
}

/// Opens the history for reading. `None` if it does not exist yet.
fn read() -> anyhow::Result<Option<History>> {
    Ok(History::read(&file()?)?)
}

/// Returns an absolute path as text. The history identifies run directories and world files by such paths. Links are
/// resolved if the path exists.
fn absolute(path: &Path) -> anyhow::Result<String> {
    let resolved = path.canonicalize().or_else(|_| std::path::absolute(path));
    let resolved = resolved.with_context(|| path.display().to_string())?;
    let text = resolved
        .to_str()
        .with_context(|| format!("{}: the history of runs takes only paths in UTF-8", resolved.display()))?;
    Ok(text.to_owned())
}

/// Record of an exploration that is running.
pub(super) struct Entry {
    run: Run,
}

impl Entry {
    /// Records that an exploration starts or resumes. If that fails, prints a note and returns `None`.
    pub(super) fn begin(
        ui: &Ui,
        header: &Header,
        folder: &Path,
        limits: &Limits,
        resumed: bool,
    ) -> anyhow::Result<Option<Entry>> {
        let begun = || {
            let run = Run {
                begun_unix_s: time::unix_s(),
                budget_branches: Some(limits.branches).filter(|branches| *branches < u64::MAX),
                budget_ns: limits.host_ns,
                ..of_header(header, folder)?
            };
            History::open(&file()?)?.begin(&run, resumed)?;
            anyhow::Ok(Entry { run })
        };
        noted(ui, begun())
    }

    /// Records the end of the exploration. Returns the comparison with the previous run, if there is one.
    pub(super) fn finish(
        self,
        ui: &Ui,
        merged: &Merged,
        end: &ExplorationEnd,
    ) -> anyhow::Result<Option<Compared>> {
        let ended = || {
            let mut run = with_results(self.run, merged, Some(end));
            run.ended_unix_s = Some(time::unix_s());
            let mut history = History::open(&file()?)?;
            history.finish(&run, &findings_of(merged))?;
            let run = history.run(&run.folder)?.unwrap_or(run);
            anyhow::Ok(history.compared(&run)?)
        };
        Ok(noted(ui, ended())?.flatten())
    }
}

/// Prints an error as a note, and returns `None` for it.
fn noted<T>(ui: &Ui, result: anyhow::Result<T>) -> anyhow::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            let line = format!(
                "the history of runs does not list this run: {}",
                printable(&with_causes(error.as_ref()))
            );
            ui.say(style::paint(style::NOTE, line))?;
            Ok(None)
        }
    }
}

/// Records the explorations that these run directories contain.
pub(super) fn add(ui: &Ui, folders: &[PathBuf]) -> anyhow::Result<()> {
    let file = file()?;
    for folder in folders {
        let exploration = exploration::Run::read(folder)?;
        let (reading, merged) = (&exploration.reading, &exploration.merged);
        let mut history = History::open(&file)?;
        let run = put(&mut history, folder, reading.header(), merged, reading.end())?;
        ui.record(&list::Line::of(&history, &run)?)?;
        ui.say(format!("recorded {}", printable(&run.folder)))?;
    }
    Ok(())
}

/// Records the exploration that an imported run directory contains.
pub(super) fn add_imported(ui: &Ui, folder: &Path) -> anyhow::Result<()> {
    add(ui, &[folder.to_owned()])
}

/// Returns the runs of a world file, or all runs, newest first.
fn recorded(history: &History, world: Option<&Path>) -> anyhow::Result<Vec<Run>> {
    let world = world.map(absolute).transpose()?;
    Ok(history.runs(world.as_deref(), everett_history::run::RUNS_MAX)?)
}

/// Records the exploration that a run directory contains, with its results so far.
fn put(
    history: &mut History,
    folder: &Path,
    header: &Header,
    merged: &Merged,
    end: Option<&ExplorationEnd>,
) -> anyhow::Result<Run> {
    // The times of start and end are the modification times of two files: Everett writes the header (`run.json`) once,
    // at the start, and `end.json` at the end.
    let changed_unix_s = |name: &str| {
        let metadata = folder.join(name).symlink_metadata().ok()?;
        u64::try_from(metadata.mtime()).ok()
    };
    let run = Run {
        begun_unix_s: changed_unix_s("run.json").unwrap_or_else(time::unix_s),
        ended_unix_s: end.and_then(|_| changed_unix_s("end.json")),
        ..with_results(of_header(header, folder)?, merged, end)
    };
    history.finish(&run, &findings_of(merged))?;
    Ok(history.run(&run.folder)?.unwrap_or(run))
}

fn of_header(header: &Header, folder: &Path) -> anyhow::Result<Run> {
    Ok(Run {
        folder: absolute(folder)?,
        world: header.world_file.clone(),
        identity: header.identity.clone(),
        seed: header.seed.number(),
        strategy: header.strategy.0.clone(),
        engine: header.engine.clone(),
        exact: header.exact,
        ..Run::default()
    })
}

fn with_results(run: Run, merged: &Merged, end: Option<&ExplorationEnd>) -> Run {
    let why = end.and_then(|end| serde_json::to_value(end.why).ok()?.as_str().map(str::to_owned));
    Run {
        why,
        branches: merged.branches(),
        vtime_ns: merged.totals().vtime_ns,
        cpu_ns: merged.totals().cost.cpu_ns,
        digest: merged.digest().to_hex().to_string(),
        findings: merged.findings().len() as u64,
        ..run
    }
}

fn findings_of(merged: &Merged) -> Vec<Finding> {
    let findings = merged.findings().iter().map(|finding| Finding {
        id: finding.id,
        property: finding.hit.property.clone(),
        signature: finding.hit.signature.clone(),
        text: finding.hit.text.clone(),
    });
    findings.collect()
}

/// Returns at most `most` run directories with older runs of the same world, oldest first. It leaves out directories
/// that no longer exist. The run in `folder` may be missing from the history.
pub(super) fn older(header: &Header, folder: &Path, most: usize) -> anyhow::Result<Vec<PathBuf>> {
    let Some(history) = read()? else { return Ok(Vec::new()) };
    let run = of_header(header, folder)?;
    let run = match history.run(&run.folder)? {
        Some(recorded) => recorded,
        None => Run { begun_unix_s: time::unix_s(), ..run },
    };
    // Asks for all older runs, because some of their folders may be gone.
    let before = history.before(&run, everett_history::run::RUNS_MAX)?;
    let mut older: Vec<PathBuf> =
        before.iter().filter(|run| is_there(run)).take(most).map(|run| PathBuf::from(&run.folder)).collect();
    older.reverse();
    Ok(older)
}

/// True if the run's folder still holds this exploration.
fn is_there(run: &Run) -> bool {
    Header::read(Path::new(&run.folder)).is_ok_and(|header| is_of(&header, run))
}

/// True if `header` has the same world, images, machine version and seed as this run.
fn is_of(header: &Header, run: &Run) -> bool {
    header.identity == run.identity && header.seed.number() == run.seed
}

/// Returns the number of findings for each status as text, e.g. `2 new, 1 gone`. Empty if there are no findings.
fn counted(compared: &Compared) -> String {
    let statuses = [(Status::New, "new"), (Status::Ongoing, "ongoing"), (Status::Gone, "gone")];
    let counts = statuses.map(|(status, word)| (compared.count(status), word));
    let told = counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    told.collect::<Vec<_>>().join(", ")
}

/// Prints how an ended exploration compares with the previous run.
pub(super) fn tell(ui: &Ui, compared: &Compared) -> anyhow::Result<()> {
    let counts = counted(compared);
    let counts = if counts.is_empty() { "neither run has a finding".to_owned() } else { counts };
    let changed = if compared.changed { "; the world has changed since" } else { "" };
    let line =
        format!("compared with the previous run, {}: {counts}{changed}", printable(&compared.before.folder));
    Ok(ui.say(style::paint(style::FAINT, line))?)
}

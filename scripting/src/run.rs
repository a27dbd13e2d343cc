//! A run directory: the branches and findings of an exploration.

use std::path::Path;
use std::sync::{Arc, Mutex};

use everett_explorer::plan::Plan;
use everett_explorer::run::{Finding, Header, Merged, Record};
use everett_input::units::Vtime;
use everett_session::explore::id::Id;
use everett_session::explore::run_directory::RunDirectory;
use everett_session::inside::debug_files::DebugFolders;
use everett_session::machines::engines::EngineChoice;

use super::error::Error;
use super::host::Host;
use super::moment::Moment;
use super::stage::Stage;
use super::world::asked;

/// A run directory.
pub struct Run {
    run: RunDirectory,
    engine: EngineChoice,
    debug: DebugFolders,
    /// The world, once a moment was asked for.
    stage: Mutex<Option<Arc<Stage>>>,
}

impl Run {
    /// Opens a run directory.
    ///
    /// # Errors
    /// Returns an error if it is damaged, or if another machine version wrote it.
    pub fn open(folder: &Path, engine: EngineChoice, debug: DebugFolders) -> Result<Run, Error> {
        Ok(Run { run: RunDirectory::open(folder)?, engine, debug, stage: Mutex::default() })
    }

    /// Returns the header.
    #[must_use]
    pub fn header(&self) -> &Header {
        self.run.reading.header()
    }

    /// Returns the results of all branches.
    #[must_use]
    pub fn merged(&self) -> &Merged {
        &self.run.merged
    }

    /// Returns the number of recorded branches.
    #[must_use]
    pub fn branches(&self) -> u64 {
        self.run.reading.len()
    }

    /// Returns a finding.
    ///
    /// # Errors
    /// Returns an error if there is no finding with this number.
    pub fn finding(&self, id: u32) -> Result<&Finding, Error> {
        self.run.finding(id).map_err(|error| Error::Missing(error.to_string()))
    }

    /// Returns the record of a branch, or of a finding's first branch.
    ///
    /// # Errors
    /// Returns an error if there is none, or if the run directory is damaged.
    pub fn record(&self, id: Id) -> Result<Record, Error> {
        let is_missing = match id {
            Id::Finding(id) => self.finding(id).is_err(),
            Id::Branch(number) => number >= self.branches(),
        };
        self.run.record(id).map_err(|error| match is_missing {
            true => Error::Missing(error.to_string()),
            false => error.into(),
        })
    }

    /// Runs a branch up to a vtime, in nanoseconds since power-on, and returns the moment there. Without a vtime, the
    /// instant is the one at which the finding showed, or the end of the branch.
    ///
    /// # Errors
    /// Returns an error if there is no such branch or instant, if the world has changed since it was explored, or if the
    /// call was interrupted.
    pub fn moment(&self, host: &Host<'_>, id: Id, vtime_ns: Option<u64>) -> Result<Moment, Error> {
        let record = self.record(id)?;
        let shown_ns = match id {
            Id::Finding(id) => Some(self.finding(id)?.hit.vtime_ns),
            Id::Branch(_) => None,
        };
        let at_ns = vtime_ns.or(shown_ns).unwrap_or(record.end_ns);
        let root_ns = self.header().root_ns;
        if !(root_ns..=record.end_ns).contains(&at_ns) {
            let shown = |ns| Vtime(ns).to_string().trim().to_owned();
            return Err(Error::Argument(format!(
                "at: {} s is not on this timeline, which goes from {} s to {} s",
                shown(at_ns),
                shown(root_ns),
                shown(record.end_ns)
            )));
        }
        Moment::on_path(self.stage(host)?, host, &record.path, at_ns)
    }

    /// Returns the root moment of the exploration, at which all services are ready. Its forks have no faults.
    ///
    /// # Errors
    /// Returns an error if the world has changed since it was explored, or if the call was interrupted.
    pub fn root(&self, host: &Host<'_>) -> Result<Moment, Error> {
        Moment::root(self.stage(host)?, Plan::default())
    }

    fn stage(&self, host: &Host<'_>) -> Result<Arc<Stage>, Error> {
        let mut stage = host.lock(&self.stage)?;
        if let Some(stage) = &*stage {
            return Ok(Arc::clone(stage));
        }
        let (setting, _) =
            self.run.setting(host.progress, host.access, asked(self.engine), &host.interrupt)?;
        Ok(Arc::clone(stage.insert(Arc::new(Stage::new(setting, self.debug.clone())))))
    }
}

//! An instant of a timeline. It never changes.

use std::sync::{Arc, Mutex};

use everett_explorer::plan::Plan;
use everett_explorer::search::Path;
use everett_session::explore::branch_moment::BranchMoment;
use everett_session::explore::path_runner::PathRunner;
use everett_session::inside::fork as session;
use everett_session::probes::in_fork;
use everett_session::world::timeline::Timeline;
use everett_vmm::Digest;

use super::error::Error;
use super::fork::Fork;
use super::host::Host;
use super::judged::{self, Judged};
use super::observed::{Observed, Recorder};
use super::stage::Stage;
use super::view::View;

/// An instant of a timeline.
pub struct Moment {
    stage: Arc<Stage>,
    plan: Plan,
    path: Path,
    vtime_ns: u64,
    at: BranchMoment,
    /// Reason why the timeline cannot go on from here.
    ended: Option<String>,
    /// Events and messages up to here.
    observed: Arc<Observed>,
    /// Machines that stand here, for reads. No caller runs them.
    standing: Mutex<Timeline>,
}

impl Moment {
    /// Returns the root moment of a world: its services are ready, and the timeline has begun under the setting's seed.
    pub(crate) fn root(stage: Arc<Stage>, plan: Plan) -> Result<Moment, Error> {
        let setting = &stage.setting;
        let begun = || -> anyhow::Result<(Timeline, BranchMoment)> {
            let mut timeline = setting.launcher.resume(&setting.ready)?;
            timeline.apply_faults(Some(setting.faults(plan.clone())))?;
            timeline.begin(setting.seed)?;
            let at = BranchMoment::of(&mut timeline, &setting.pool, setting.inherited_at_boot()?);
            Ok((timeline, at))
        };
        let (timeline, at) = begun()?;
        let vtime_ns = timeline.vtime();
        let mut observed = Observed::default();
        setting.ready.events.iter().for_each(|event| observed.event(event.clone()));
        Ok(Moment {
            plan,
            path: Path::default(),
            vtime_ns,
            at,
            ended: None,
            observed: Arc::new(observed),
            standing: Mutex::new(timeline),
            stage,
        })
    }

    /// Runs the timeline of a path from the root moment to a vtime, and returns the moment there.
    pub(crate) fn on_path(
        stage: Arc<Stage>,
        host: &Host<'_>,
        path: &Path,
        vtime_ns: u64,
    ) -> Result<Moment, Error> {
        let mut observed = Observed::default();
        stage.setting.ready.events.iter().for_each(|event| observed.event(event.clone()));
        let mut recorder = Recorder { observed: &mut observed, interrupt: &host.interrupt };
        let setting = &stage.setting;
        let mut runner = PathRunner::new(setting)?;
        let memory = setting.inherited_at_boot()?;
        let (at, ended) = runner.rewind_to_end(path, None, vtime_ns, &memory, &mut recorder)?;
        let timeline = runner.into_timeline();
        let taken = timeline.path().clone();
        let plan = setting.fates().plan(&taken);
        Ok(Moment {
            plan,
            path: taken,
            vtime_ns,
            at,
            ended,
            observed: Arc::new(observed),
            standing: Mutex::new(timeline),
            stage,
        })
    }

    /// Returns the vtime, in nanoseconds.
    #[must_use]
    pub fn vtime_ns(&self) -> u64 {
        self.vtime_ns
    }

    /// Returns the name of the timeline: its identity, the seed and its path.
    #[must_use]
    pub fn name(&self) -> String {
        self.stage.setting.name(&self.path)
    }

    /// Returns the names of the nodes.
    #[must_use]
    pub fn nodes(&self) -> Vec<String> {
        self.stage.nodes()
    }

    /// Returns why the timeline cannot go on from here. `None` if it can.
    #[must_use]
    pub fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    /// Returns the fault plan of the timeline, as the lines of a plan file.
    #[must_use]
    pub fn plan(&self) -> String {
        self.plan.write()
    }

    /// Returns the digest of the world.
    ///
    /// # Errors
    /// Returns an error if the call was interrupted while another one reads the machines.
    pub fn digest(&self, host: &Host<'_>) -> Result<Digest, Error> {
        Ok(host.lock(&self.standing)?.digest())
    }

    /// Returns the events and messages of the timeline before this vtime, from power-on. Those of this vtime are of the
    /// forks.
    #[must_use]
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// Judges the properties of the world on the timeline before this vtime.
    ///
    /// # Errors
    /// Returns an error if the timeline has had more events than are kept.
    pub fn judge(&self) -> Result<Judged, Error> {
        let setting = &self.stage.setting;
        let before = setting.inherited_at_boot()?;
        // The state at the root moment has the events of the boot.
        let of_boot = setting.ready.events.len();
        let events = self.observed.events()?.get(of_boot..).unwrap_or_default();
        judged::judge(setting, &before, &self.plan, events)
    }

    /// Makes a fork.
    ///
    /// # Errors
    /// Returns an error if the timeline has ended here, or if the machines cannot be restored.
    pub fn fork(&self) -> Result<Fork, Error> {
        if let Some(why) = &self.ended {
            return Err(Error::Failed(format!("the timeline has ended here: {why}")));
        }
        let timeline = self.stage.restore(&self.at, &self.plan)?;
        let mut fork = session::Fork::new(timeline);
        if let Some(probes) = &self.stage.setting.probes {
            in_fork::observe(&mut fork, probes, &self.at.memory.probes)?;
        }
        Ok(Fork::new(Arc::clone(&self.stage), fork, self.at.memory.clone()))
    }

    /// Calls `look` with the machines at this instant.
    ///
    /// # Errors
    /// Returns the error of `look`.
    pub fn look<T>(
        &self,
        host: &Host<'_>,
        look: impl FnOnce(&View<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        host.goes_on()?;
        let timeline = &*host.lock(&self.standing)?;
        look(&View { stage: &self.stage, timeline, interrupt: &host.interrupt })
    }
}

//! Data that all branches of an exploration share.

use std::sync::Arc;

use anyhow::Context;
use everett_explorer::fate::Fates;
use everett_explorer::plan::Plan;
use everett_explorer::sdk::{self, SdkLine};
use everett_explorer::search::Path;
use everett_snapshot::Pool;
use everett_streams::Seed;
use everett_world_file::World;

use super::abstractions::Abstractions;
use super::witness::{Inherited, Witness};
use crate::probes::Declared;
use crate::run::booted::Booted;
use crate::run::launch::Launcher;
use crate::run::restarts::Nodes;
use crate::world::event::What;
use crate::world::identity::Identity;
use crate::world::moments::Stored;
use crate::world::timeline::Faults;
use crate::world::timeline::restart_point::RestartPoint;

/// A booted world, and the data with which Everett explores it and finds violations in its timelines.
pub struct Setting {
    /// Launcher of timelines that start at *ready*, when all services are up.
    pub launcher: Launcher,
    /// Moment at *ready*, the root of all timelines.
    pub ready: Arc<Stored>,
    /// Pool in which moments share equal pages.
    pub pool: Pool,
    /// Seed of the exploration.
    pub seed: Seed,
    /// Vtime of the root moment, in nanoseconds.
    pub root_ns: u64,
    /// The explorer's view of the world: abstract states, properties, and names of possible targets of faults.
    pub abstractions: Abstractions,
    /// Digest of everything that the exploration's timelines depend on, except the seed and the paths. It is part of
    /// the name of each timeline.
    pub identity: Identity,
    /// Probes that explorations observe. `None` if there are none.
    pub probes: Option<Arc<Declared>>,
    restarts: Arc<Nodes>,
}

impl Setting {
    /// Creates the setting of a booted world. `launcher` starts the world at power-on. The setting keeps a copy of
    /// `launcher` that starts the world at *ready*.
    ///
    /// # Errors
    /// Returns an error if a declaration in the world file is invalid, or if `booted` has not reached *ready*.
    pub fn new(
        launcher: Launcher,
        booted: &Booted,
        points: Arc<[RestartPoint]>,
        image: &str,
        seed: Seed,
    ) -> anyhow::Result<Setting> {
        let abstractions = Abstractions::new(&launcher.world)?;
        let identity = Identity::of_exploration(&launcher.world, &[image.to_owned()]);
        let root_ns = booted.ready.session.ready_ns().context("the world is not ready")?;
        let probes = Declared::of(&launcher)?.map(Arc::new);
        let restarts = Nodes::new(Launcher { from: None, ..launcher.clone() }, points);
        Ok(Setting {
            launcher: Launcher { from: Some(Arc::clone(&booted.ready)), ..launcher },
            ready: Arc::clone(&booted.ready),
            pool: booted.pool.clone(),
            seed,
            root_ns,
            abstractions,
            identity,
            probes,
            restarts: Arc::new(restarts),
        })
    }

    /// Returns the same setting with machines that record edges of code (executed jumps). The timelines stay the same.
    ///
    /// # Errors
    /// Returns an error if a declaration in the world file is invalid, which [`Setting::new`] has already excluded.
    pub fn with_edges(&self) -> anyhow::Result<Setting> {
        let mut launcher = self.launcher.clone();
        launcher.options.caches.edges = true;
        Ok(Setting {
            abstractions: Abstractions::new(&launcher.world)?,
            launcher,
            ready: Arc::clone(&self.ready),
            pool: self.pool.clone(),
            seed: self.seed,
            root_ns: self.root_ns,
            identity: self.identity,
            probes: self.probes.clone(),
            restarts: Arc::clone(&self.restarts),
        })
    }

    /// Adds probes to the setting, each of whose hits becomes an event. `debug` names further debug files. The timelines
    /// stay the same.
    ///
    /// # Errors
    /// Returns an error if the kernel cannot be read, or if a probe has no place in it.
    #[cfg(feature = "inside")]
    pub fn add_probes(
        &mut self,
        probes: Vec<crate::probes::probe::Probe>,
        debug: crate::inside::debug_files::DebugFolders,
    ) -> anyhow::Result<()> {
        self.probes = Declared::with(&self.launcher, probes, debug)?.map(Arc::new);
        Ok(())
    }

    /// Returns the inputs from which the explorer computes the fault plan and the end of each branch.
    #[must_use]
    pub fn fates(&self) -> Fates<'_> {
        let World { explore, faults, .. } = &self.launcher.world;
        Fates { explore, faults, names: &self.abstractions.names, seed: self.seed, root_ns: self.root_ns }
    }

    /// Returns the faults of `plan` for a timeline.
    #[must_use]
    pub fn faults(&self, plan: Plan) -> Faults {
        Faults::new(plan, Arc::clone(&self.restarts) as _).on(self.launcher.options)
    }

    /// Returns the explorer's state at the root moment, i.e. what it has observed before that moment. All branches
    /// inherit this state.
    ///
    /// # Errors
    /// Returns an error if the state belongs to another world, which cannot happen here.
    pub fn inherited_at_boot(&self) -> anyhow::Result<Inherited> {
        let plan = Plan::default();
        let mut witness = Witness::new(&self.abstractions, &plan, &Inherited::new(&self.abstractions))?;
        // Two kinds of events are left out. Kernel lines of the boot are the same on all timelines and say nothing
        // about a service's state. Violated assertions are reported again by each timeline when it begins.
        let events = self.ready.events.iter().filter(|event| match &event.what {
            What::Kernel { .. } => false,
            What::Sdk { text } => {
                !matches!(sdk::parse(text), Ok(SdkLine::Assertion(one)) if one.is_violated())
            }
            _ => true,
        });
        events.for_each(|event| witness.hear(event));
        Ok(witness.memory())
    }

    /// Returns the name of a timeline: its identity, the seed and its path.
    #[must_use]
    pub fn name(&self, path: &Path) -> String {
        format!("{}{path}", self.identity.path(self.seed))
    }
}

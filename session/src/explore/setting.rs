//! Data that all branches of an exploration share: a booted world, and the way it is explored and judged.

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
use crate::run::booted::Booted;
use crate::run::launch::Launcher;
use crate::run::restarts::Nodes;
use crate::world::event::What;
use crate::world::identity::Identity;
use crate::world::moments::Stored;
use crate::world::timeline::Faults;
use crate::world::timeline::restart_point::RestartPoint;

/// Data that all branches of an exploration share.
pub struct Setting {
    /// Launcher of timelines, which starts them at *ready*.
    pub launcher: Launcher,
    /// The *ready* moment.
    pub ready: Arc<Stored>,
    /// Pool of the moments' pages.
    pub pool: Pool,
    /// Seed of the exploration.
    pub seed: Seed,
    /// vtime of the root moment, in nanoseconds.
    pub root_ns: u64,
    /// The explorer's view of the world.
    pub abstractions: Abstractions,
    /// Identity of the exploration, which names its paths.
    pub identity: Identity,
    restarts: Arc<Nodes>,
}

impl Setting {
    /// Creates the setting for a booted world; `launcher` starts it at power-on.
    ///
    /// # Errors
    /// Returns an error if a declaration of the world file is invalid, or if `booted` was never ready.
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
        let restarts = Nodes::new(Launcher { from: None, ..launcher.clone() }, points);
        Ok(Setting {
            launcher: Launcher { from: Some(Arc::clone(&booted.ready)), ..launcher },
            ready: Arc::clone(&booted.ready),
            pool: booted.pool.clone(),
            seed,
            root_ns,
            abstractions,
            identity,
            restarts: Arc::new(restarts),
        })
    }

    /// Returns the same setting with machines that record edges of code. Timelines are the same.
    ///
    /// # Errors
    /// Never returns an error: the declarations of the world file were valid before.
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
            restarts: Arc::clone(&self.restarts),
        })
    }

    /// Returns the inputs that determine the plans and fates of branches.
    #[must_use]
    pub fn fates(&self) -> Fates<'_> {
        let World { explore, faults, .. } = &self.launcher.world;
        Fates { explore, faults, names: &self.abstractions.names, seed: self.seed, root_ns: self.root_ns }
    }

    /// Returns `plan` in a form that timelines can apply.
    #[must_use]
    pub fn faults(&self, plan: Plan) -> Faults {
        Faults::new(plan, Arc::clone(&self.restarts) as _).on(self.launcher.options)
    }

    /// Returns the observer state after the boot.
    ///
    /// # Errors
    /// Never returns an error: the state is created for this world.
    pub fn inherited_at_boot(&self) -> anyhow::Result<Inherited> {
        let plan = Plan::default();
        let mut witness = Witness::new(&self.abstractions, &plan, &Inherited::new(&self.abstractions))?;
        // Kernel lines of the boot are left out: they are the same on all timelines and say nothing about the state of
        // a service.
        // Violated assertions are left out, too: each timeline reports them again where it begins.
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

    /// Returns the name of a timeline: its identity and its path.
    #[must_use]
    pub fn name(&self, path: &Path) -> String {
        format!("{}{path}", self.identity.path(self.seed))
    }
}

//! What all branches of an exploration share: a world that is ready, and how it is explored and judged.

use std::sync::Arc;

use anyhow::Context;
use everett_explorer::fate::Fates;
use everett_explorer::plan::Plan;
use everett_explorer::search::Path;
use everett_snapshot::Pool;

use super::lens::Lens;
use super::witness::{Memory, Witness};
use crate::booted::Booted;
use crate::event::What;
use crate::identity::Identity;
use crate::launch::Launcher;
use crate::moments::Stored;
use crate::restarts::Nodes;
use crate::timeline::Faults;
use crate::timeline::restart_point::RestartPoint;
use crate::world_file::World;

/// What all branches of an exploration share.
pub struct Setting {
    /// What starts timelines: where the world is ready.
    pub launcher: Launcher,
    /// Where that is.
    pub ready: Arc<Stored>,
    /// Where pages are.
    pub pool: Pool,
    /// The seed.
    pub seed: u64,
    /// The root moment, in nanoseconds of vtime.
    pub root_ns: u64,
    /// How the world is looked at.
    pub lens: Lens,
    /// What paths are a function of.
    pub identity: Identity,
    restarts: Arc<Nodes>,
}

impl Setting {
    /// A world that `launcher` starts at power-on, booted.
    ///
    /// # Errors
    /// What it declares is wrong, or it was never ready.
    pub fn new(
        launcher: Launcher,
        booted: &Booted,
        points: Arc<[RestartPoint]>,
        image: &str,
        seed: u64,
    ) -> anyhow::Result<Setting> {
        let lens = Lens::new(&launcher.world)?;
        let identity = Identity::of_exploration(&launcher.world, &[image.to_owned()]);
        let root_ns = booted.ready.session.ready_ns().context("the world is not ready")?;
        let restarts = Nodes::new(Launcher { from: None, ..launcher.clone() }, points);
        Ok(Setting {
            launcher: Launcher { from: Some(Arc::clone(&booted.ready)), ..launcher },
            ready: Arc::clone(&booted.ready),
            pool: booted.pool.clone(),
            seed,
            root_ns,
            lens,
            identity,
            restarts: Arc::new(restarts),
        })
    }

    /// What becomes of timelines.
    #[must_use]
    pub fn fates(&self) -> Fates<'_> {
        let World { explore, faults, .. } = &self.launcher.world;
        Fates { explore, faults, names: &self.lens.names, seed: self.seed, root_ns: self.root_ns }
    }

    /// This plan, to be carried out.
    #[must_use]
    pub fn faults(&self, plan: Plan) -> Faults {
        Faults::new(plan, Arc::clone(&self.restarts) as _).on(self.launcher.options)
    }

    /// What was seen while the world booted.
    ///
    /// # Errors
    /// Never: the world is this one.
    pub fn memory_of_boot(&self) -> anyhow::Result<Memory> {
        let plan = Plan::default();
        let mut witness = Witness::new(&self.lens, &plan, &Memory::new(&self.lens))?;
        // What kernels print while they boot is the same on all timelines, and says nothing of the state of a service.
        let told = self.ready.events.iter().filter(|event| !matches!(event.what, What::Kernel { .. }));
        told.for_each(|event| witness.hear(event));
        Ok(witness.memory())
    }

    /// The name of a timeline: what it is a function of, and its path.
    #[must_use]
    pub fn name(&self, path: &Path) -> String {
        format!("{}{path}", self.identity.path(self.seed))
    }
}

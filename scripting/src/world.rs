//! A world file that is booted.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use everett_explorer::plan::Plan;
use everett_explorer::plan::limits::PLAN_BYTES_MAX;
use everett_session::explore::run_directory;
use everett_session::inside::debug_files::DebugFolders;
use everett_session::machines::EngineOptions;
use everett_session::machines::engines::{Asked, Engine, EngineChoice};
use everett_streams::Seed;

use super::error::Error;
use super::host::Host;
use super::moment::Moment;
use super::stage::Stage;

/// Host time after which a guest that computes on `/dev/kvm` without an exit is given up.
const PATIENCE: Duration = Duration::from_mins(1);

/// Returns the request for an engine that is exact.
pub(crate) fn asked(engine: EngineChoice) -> Asked {
    Asked { engine, allow_inexact: false, patience: PATIENCE }
}

/// A world whose services are ready.
pub struct World {
    stage: Arc<Stage>,
}

impl World {
    /// Reads a world file and boots it, or loads its stored boot. Without a seed, the world file's counts, or else 0.
    ///
    /// # Errors
    /// Returns an error if the world file is invalid, if its image cannot be built, or if it does not become ready.
    pub fn boot(
        host: &Host<'_>,
        file: &Path,
        seed: Option<Seed>,
        engine: EngineChoice,
        debug: DebugFolders,
    ) -> Result<World, Error> {
        let world = everett_world_file::load(file).map_err(anyhow::Error::from)?;
        let asked = run_directory::for_probes(&world, asked(engine))?;
        let engine = Engine::choose(asked, world.clock, world.cpu).map_err(anyhow::Error::from)?;
        let options = engine.options(EngineOptions::default());
        let explored =
            run_directory::prepare(host.progress, host.access, world, seed, options, &host.interrupt)?;
        Ok(World { stage: Arc::new(Stage::new(explored.setting, debug)) })
    }

    /// Returns the names of the nodes.
    #[must_use]
    pub fn nodes(&self) -> Vec<String> {
        self.stage.nodes()
    }

    /// Returns the seed.
    #[must_use]
    pub fn seed(&self) -> Seed {
        self.stage.setting.seed
    }

    /// Returns the root moment, at which all services are ready. Its forks run under a fault plan: the text of a plan file.
    ///
    /// # Errors
    /// Returns an error if the plan is invalid.
    pub fn root(&self, plan: &str) -> Result<Moment, Error> {
        if plan.len() > PLAN_BYTES_MAX {
            return Err(Error::Argument(format!("a plan has at most {PLAN_BYTES_MAX} bytes")));
        }
        let plan = Plan::parse(plan, &self.stage.setting.abstractions.names).map_err(|errors| {
            let first = errors.errors.first().map(ToString::to_string);
            Error::Argument(format!("plan: {}", first.unwrap_or_default()))
        })?;
        Moment::root(Arc::clone(&self.stage), plan)
    }
}

//! Restarts of nodes after a power loss: warm, from a stored restart point, or cold, by booting a new machine. A
//! restart point is a stored machine whose kernel and agent (Everett's program in the guest) are up.

use std::sync::Arc;

use everett_input::causes::with_causes;
use everett_streams::BootSeed;
use everett_vmm::machine::Machine;

use super::launch::Launcher;
use crate::machines::EngineOptions;
use crate::world::timeline::Restarts;
use crate::world::timeline::restart_point::RestartPoint;

const NS_PER_S: u64 = 1_000_000_000;

/// Source of machines for restarts of a world's nodes.
pub struct Nodes {
    launcher: Launcher,
    points: Arc<[RestartPoint]>,
}

impl Nodes {
    /// Creates the source of machines for restarts of the nodes that `launcher` starts. `points` has their restart
    /// points in the same order.
    #[must_use]
    pub fn new(launcher: Launcher, points: Arc<[RestartPoint]>) -> Nodes {
        Nodes { launcher, points }
    }
}

impl Restarts for Nodes {
    fn warm(&self, node: usize) -> Result<&RestartPoint, String> {
        self.points.get(node).ok_or_else(|| "it has no restart point".to_owned())
    }

    fn cold(
        &self,
        node: usize,
        boot_seed: BootSeed,
        world_ns: u64,
        options: &EngineOptions,
    ) -> Result<Machine, String> {
        let of_world = self.launcher.nodes().nth(node).ok_or("there is no such node")?;
        let mut config = self.launcher.config(of_world).map_err(|error| with_causes(&error))?;
        config.boot_seed = boot_seed;
        config.epoch_unix_s = config.epoch_unix_s.saturating_add_unsigned(world_ns / NS_PER_S);
        options.machine(config).map_err(|error| with_causes(&error))
    }
}

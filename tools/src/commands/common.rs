//! What several commands begin with: the world, the node, the seed, the engine.

use std::path::Path;

use anyhow::bail;

use crate::cli::{EngineChoice, Timeline};
use crate::world_file::{self, Node, World};

/// Refuse engines that this version does not have.
pub(super) fn check_engine(engine: EngineChoice) -> anyhow::Result<()> {
    match engine {
        EngineChoice::Auto | EngineChoice::Soft => Ok(()),
        EngineChoice::Kvm => bail!("--engine kvm is not built into this version; use --engine soft"),
    }
}

/// Read a world; its error already names the file.
pub(super) fn load(file: &Path) -> anyhow::Result<World> {
    Ok(world_file::load(file)?)
}

/// The only node of a world: this version runs worlds of one machine.
pub(super) fn only_node(world: &World) -> anyhow::Result<&Node> {
    match &world.nodes[..] {
        [node] => Ok(node),
        nodes => {
            bail!("{}: node: {} nodes; this version runs worlds of one", world.file.display(), nodes.len())
        }
    }
}

/// The seed of the command line, else the world's, else 0.
pub(super) fn seed(timeline: &Timeline, world: &World) -> u64 {
    timeline.seed.or(world.seed).unwrap_or(0)
}

//! What several commands begin with: the world, the node, the seed, the engine.

use std::path::Path;

use anyhow::bail;
use serde::Serialize;

use crate::cli::{EngineChoice, Timeline};
use crate::doctor;
use crate::ui::{Ui, style};
use crate::world_file::{self, Node, World};

/// Refuse engines that this version does not have.
pub(super) fn check_engine(engine: EngineChoice) -> anyhow::Result<()> {
    match engine {
        EngineChoice::Auto | EngineChoice::Soft => Ok(()),
        EngineChoice::Kvm => bail!("--engine kvm is not built into this version; use --engine soft"),
    }
}

/// Say which engine runs, and why.
pub(super) fn announce_engine(ui: &Ui) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Record<'a> {
        kind: &'static str,
        engine: &'a str,
        why: &'a str,
    }
    let (engine, why) = doctor::engine_choice();
    ui.say(style::paint(style::FAINT, format!("engine {engine}: {why}")))?;
    ui.record(&Record { kind: "engine", engine, why })?;
    Ok(())
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

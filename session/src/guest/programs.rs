//! Programs that Everett puts into guests of container images and of worlds with the SDK.
//!
//! Builds without the feature `containers` lack these programs and refuse worlds that need them. The feature `inside`
//! brings a program that only throw-away forks get.

use anyhow::bail;
use everett_world_file::World;

#[cfg(feature = "containers")]
pub(crate) use everett_guest_programs::{COLLECTOR, INIT, LIBRARY, SHIM};

#[cfg(feature = "inside")]
pub(crate) use everett_guest_programs::INSIDE;

#[cfg(not(feature = "containers"))]
mod none {
    pub(crate) const SHIM: &[u8] = &[];
    pub(crate) const INIT: &[u8] = &[];
    pub(crate) const LIBRARY: &[u8] = &[];
    pub(crate) const COLLECTOR: &[u8] = &[];
}
#[cfg(not(feature = "containers"))]
pub(crate) use none::{COLLECTOR, INIT, LIBRARY, SHIM};

/// Returns an error if the world's guests need programs that this build lacks.
pub(crate) fn check(world: &World) -> anyhow::Result<()> {
    if cfg!(feature = "containers") {
        return Ok(());
    }
    let image = world.nodes.iter().find(|node| node.image.is_some());
    let what = match image {
        Some(node) => format!("node \"{}\" has a container image", node.name),
        None if world.sdk.is_some() => "it has the section [sdk]".to_owned(),
        None => return Ok(()),
    };
    bail!(
        "{}: {what}, and this build of everett has no programs for its guests; build it with the feature containers (cargo \
         build --release)",
        world.file.display()
    );
}

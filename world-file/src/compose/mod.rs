//! Reads compose files. Each replica of a service becomes a machine.
//!
//! The modules, in the order of the steps from text to machines:
//! - `yaml`: parses the text into a bounded tree; `value`: typed access to the tree; `quantity`: parses durations and
//!   sizes
//! - `variables`: replaces `${NAME}`, and parses files that set variables
//! - `project_files`: finds a project's files; `document`: replaces variables in them, resolves `extends`, merges the
//!   files (`merge`) and applies profiles
//! - `host_path`: resolves host paths
//! - `keys`: lists what Everett does with each key: use, ignore or refuse
//! - `service`: parses one service; `process`: parses the settings of its process; `mounts`: parses its mounts, and
//!   reads the files that it mounts
//! - `ports`: reads the ports that a service declares, for `everett init`
//! - `nodes`: makes all machines: their names, their order, and which can reach each other
//! - `x_everett`: converts the block `x-everett` to TOML, which the parser of world files then reads
//!
//! The format of compose files has no keys for a world's links, workload, faults, exploration and properties. These
//! settings are in the block `x-everett`, or in a world file that has `compose = "compose.yaml"`.
//!
//! **Invariants.** As in world files, every error is one line with file, line and key, and reading never panics. A key
//! is used, listed as ignored, or an error. Everett reads no file outside of the compose file's folder
//! (`crate::confinement` checks the paths).

mod document;
#[cfg(test)]
mod escapes;
mod host_path;
mod keys;
mod merge;
#[cfg(test)]
mod merge_tests;
mod mounts;
mod nodes;
mod ports;
mod process;
mod project_files;
mod quantity;
mod service;
#[cfg(test)]
mod tests;
mod value;
mod variables;
mod x_everett;
mod yaml;

use std::collections::BTreeMap;

use everett_image_origin::ImageOrigin;

pub(crate) use document::Text;
pub(crate) use nodes::Composition;
pub use project_files::listed;
pub(crate) use project_files::{beside, files, named};

use crate::cursor::{Source, Table};
use crate::error::Error;
use crate::{CheckKind, World};

/// A compose file that has been read. Its images may still be replaced.
pub(crate) struct Compose<'p>(document::Document<'p>);

impl<'p> Compose<'p> {
    /// Reads a compose file from the text of its first file and the texts of the files that are merged over it.
    /// `process` returns the value of an environment variable of Everett's process.
    pub(crate) fn new(
        files: &[Text<'_>],
        process: &'p dyn Fn(&str) -> Option<String>,
    ) -> Result<Compose<'p>, Error> {
        document::Document::new(files, process).map(Compose)
    }

    /// Returns an error if the compose file has a block `x-everett`. Called for a compose file that a world file names,
    /// because the settings of the block then belong in the world file.
    pub(crate) fn without_block(&self) -> Result<(), Error> {
        match &self.0.own {
            None => Ok(()),
            Some(node) => {
                Err(node.at.error("x-everett", "a world file names this compose file, and says all of this"))
            }
        }
    }

    /// Returns the machines. `images` maps images of the file to images that replace them.
    pub(crate) fn machines(mut self, images: &BTreeMap<String, ImageOrigin>) -> Result<Composition, Error> {
        nodes::of(&mut self.0, images)
    }
}

/// Returns true if a compose file has a block `x-everett`.
pub(crate) fn has_block(files: &[Text<'_>]) -> Result<bool, Error> {
    Ok(Compose::new(files, &crate::variable)?.0.own.is_some())
}

/// Reads the world that a compose file describes.
pub(crate) fn parse(files: &[Text<'_>], process: &dyn Fn(&str) -> Option<String>) -> Result<World, Error> {
    let compose = Compose::new(files, process)?;
    let own = compose.0.own.clone();
    let first = compose.0.file.clone();
    // If several files have the block, the block of the last file is used.
    let with_block = own.as_ref().and_then(|node| files.iter().find(|one| *one.file == *node.at.origin.file));
    let text = with_block.or(files.first()).map_or("", |one| one.text);
    let file = with_block.map_or(&*first, |one| one.file);
    let table = x_everett::table(own.as_deref(), &x_everett::Lines::of(text))?;
    let source = Source { file, text };
    let table = Table::block(&source, "x-everett", own.as_ref().map_or(1, |node| node.at.line), &table);
    let mut world = crate::read(&table, &first, Some(compose))?;
    world.more_files = files.iter().skip(1).map(|one| one.file.to_owned()).collect();
    Ok(world)
}

/// Completes the commands of checks, and of drivers, which put load on the world. A command gets the environment, user
/// and folder of the service on its machine, as with `docker compose exec`.
pub(crate) fn complete(world: &mut World) {
    let World { nodes, workload, .. } = world;
    let drivers = workload.drivers.iter_mut().map(|driver| (&driver.node, &mut driver.command));
    let checks = workload.checks.iter_mut().filter_map(|check| match &mut check.what {
        CheckKind::Command(command) => Some((&check.node, command)),
        CheckKind::Talk(_) => None,
    });
    for (node, command) in drivers.chain(checks) {
        let Some(node) = nodes.iter().find(|one| one.name == *node && one.composed.is_some()) else {
            continue;
        };
        let Some(service) = node.services.first() else { continue };
        for (name, value) in &service.command.env {
            command.env.entry(name.clone()).or_insert_with(|| value.clone());
        }
        command.user = command.user.take().or_else(|| service.command.user.clone());
        command.cwd = command.cwd.take().or_else(|| service.command.cwd.clone());
    }
}

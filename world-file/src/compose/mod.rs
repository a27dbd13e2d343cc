//! Compose files: one machine for each replica of a service.
//!
//! From the text to machines, in this order:
//! - `yaml`: the text as a bounded tree with lines; `value`: typed access to it; `quantity`: durations and sizes
//! - `variables`: `${NAME}` and files of variables
//! - `document`: the file with variables replaced, `extends` carried out and other files merged over it (`merge`), and
//!   profiles applied; `project_files`: which files a project has
//! - `host_path`: paths of the host
//! - `keys`: what becomes of each key: used, ignored or refused
//! - `service`: one service; `process`: its process; `mounts`: its volumes and files
//! - `ports`: the ports that a service names, for `everett init`
//! - `nodes`: all machines: their names, their order, who hears whom
//! - `x_everett`: the block `x-everett`, which the readers of world files read
//!
//! Everything else about a world (links, workload, faults, exploration, properties) comes from that block, or from a
//! world file with `compose = "compose.yaml"`.
//!
//! **Invariants.** As for world files: every error is one line with file, line and key; reading never panics; a key is
//! used, listed as ignored, or an error; no file outside of the compose file's folder is read (`confinement`).

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

/// A compose file that has been read, before its images are known.
pub(crate) struct Compose<'p>(document::Document<'p>);

impl<'p> Compose<'p> {
    /// Reads a compose file from the texts of its files. `process` returns the variables of the process.
    pub(crate) fn new(
        files: &[Text<'_>],
        process: &'p dyn Fn(&str) -> Option<String>,
    ) -> Result<Compose<'p>, Error> {
        document::Document::new(files, process).map(Compose)
    }

    /// Refuses a block `x-everett` beside a world file.
    pub(crate) fn without_block(&self) -> Result<(), Error> {
        match &self.0.own {
            None => Ok(()),
            Some(node) => {
                Err(node.at.error("x-everett", "a world file names this compose file, and says all of this"))
            }
        }
    }

    /// Returns the machines. `images` are images to take instead of those that the file names.
    pub(crate) fn machines(mut self, images: &BTreeMap<String, ImageOrigin>) -> Result<Composition, Error> {
        nodes::of(&mut self.0, images)
    }
}

/// Returns true if a compose file has a block `x-everett`.
pub(crate) fn has_block(files: &[Text<'_>]) -> Result<bool, Error> {
    Ok(Compose::new(files, &crate::variable)?.0.own.is_some())
}

/// Reads the world of a compose file.
pub(crate) fn parse(files: &[Text<'_>], process: &dyn Fn(&str) -> Option<String>) -> Result<World, Error> {
    let compose = Compose::new(files, process)?;
    let own = compose.0.own.clone();
    let first = compose.0.file.clone();
    // The block is that of the last file that has one.
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

/// Gives drivers and checks the environment, user and folder of the service on whose machine they run, as `docker compose
/// exec` would.
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

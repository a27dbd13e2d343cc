//! Compose files: one machine for each replica of a service.
//!
//! From the text to machines, in this order:
//! - `yaml`: the text as a bounded tree with lines; `value`: typed access to it; `quantity`: durations and sizes
//! - `variables`: `${NAME}` and files of variables
//! - `document`: the file with variables replaced, `extends` carried out (`merge`) and profiles applied
//! - `below`: paths of the host
//! - `keys`: what becomes of each key: used, ignored or refused
//! - `service`: one service; `process`: its process; `mounts`: its volumes and files
//! - `ports`: the ports that a service names, for `everett init`
//! - `nodes`: all machines: their names, their order, who hears whom
//! - `own`: the block `x-everett`, which the readers of world files read
//!
//! Everything else about a world (links, workload, faults, exploration, properties) comes from that block, or from a
//! world file with `compose = "compose.yaml"`.
//!
//! **Invariants.** As for world files: every error is one line with file, line and key; reading never panics; a key is
//! used, listed as ignored, or an error; no file outside of the compose file's folder is read (`confines`).

mod below;
mod document;
mod keys;
mod merge;
mod mounts;
mod nodes;
#[cfg(test)]
mod outside;
mod own;
mod ports;
mod process;
mod quantity;
mod service;
#[cfg(test)]
mod tests;
mod value;
mod variables;
mod yaml;

use std::collections::BTreeMap;
use std::path::Path;

pub(crate) use nodes::Composition;

use crate::container::ContainerImage;
use crate::cursor::{Source, Table};
use crate::error::Error;
use crate::{CheckKind, World};

/// A compose file that has been read, before its images are known.
pub(crate) struct Compose<'p>(document::Document<'p>);

impl<'p> Compose<'p> {
    /// Reads a compose file from its text. `process` returns the variables of the process.
    pub(crate) fn new(
        text: &str,
        file: &Path,
        process: &'p dyn Fn(&str) -> Option<String>,
    ) -> Result<Compose<'p>, Error> {
        document::Document::new(text, file, process).map(Compose)
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
    pub(crate) fn machines(
        mut self,
        images: &BTreeMap<String, ContainerImage>,
    ) -> Result<Composition, Error> {
        nodes::of(&mut self.0, images)
    }
}

/// Returns true if a compose file has a block `x-everett`.
pub(crate) fn has_block(text: &str, file: &Path) -> Result<bool, Error> {
    Ok(Compose::new(text, file, &crate::variable)?.0.own.is_some())
}

/// Reads the world of a compose file.
pub(crate) fn parse(
    text: &str,
    file: &Path,
    process: &dyn Fn(&str) -> Option<String>,
) -> Result<World, Error> {
    let compose = Compose::new(text, file, process)?;
    let own = compose.0.own.clone();
    let table = own::table(own.as_deref(), &own::Lines::of(text))?;
    let source = Source { file, text };
    let table = Table::block(&source, "x-everett", own.as_ref().map_or(1, |node| node.at.line), &table);
    crate::read(&table, file, Some(compose))
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

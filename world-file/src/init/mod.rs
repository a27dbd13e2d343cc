//! First world files: from a compose file, a container image, a Debian package or a program, a world that runs at once.
//!
//! - this file: [`draft`] writes the text of a world file, and loads it before anyone else does
//! - `subject`: classification of the argument
//! - `servers`: well-known servers: how they start, how they answer, where their state is
//! - `unit`: systemd's units, and listening ports; `installed`: machines with a package's own unit
//! - `machines`: the nodes of images, packages and programs; `composed`: what a compose file lacks
//! - `common`: tables that all drafts have; `text`: strings and lists of TOML
//! - `elf`: headers of programs; `error`: errors
//!
//! Not here: writing the file, and asking an image what it says about itself.
//!
//! **Invariants.** Every draft loads. Text from outside (names, paths, images) is in the draft only as TOML strings, never
//! in comments.

mod common;
mod composed;
mod elf;
mod error;
mod installed;
mod machines;
mod servers;
mod subject;
#[cfg(test)]
mod tests;
mod text;
mod unit;

use std::path::{Path, PathBuf};

use everett_image_origin::ImageOrigin;

use crate::World;

pub use elf::ElfError;
pub use error::Error;
pub use subject::{COMPOSE_FILES, Subject, compose_in};
pub use unit::{LISTENING_SCRIPT, UNITS_SCRIPT, UnitFile, listening, unit_of};

/// Configuration of a container image, as far as a draft depends on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageFacts {
    /// TCP ports at which the process serves, the lowest first.
    pub ports: Vec<u16>,
    /// True if the image has a healthcheck.
    pub has_healthcheck: bool,
}

/// A TCP port at which a program listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listening {
    /// The port.
    pub port: u16,
    /// True if other machines reach it; false if only its own machine does.
    pub everywhere: bool,
}

/// Returns the Debian packages whose servers Everett knows, one for each server.
pub fn packages() -> impl Iterator<Item = &'static str> {
    servers::SERVERS.iter().filter_map(|server| server.packages.first().copied())
}

/// Returns true if Everett knows the server in a Debian package.
#[must_use]
pub fn is_known_package(name: &str) -> bool {
    servers::of_package(name).is_some()
}

/// The machines of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Machines {
    /// Machines of a compose file.
    Compose(PathBuf),
    /// Machines with a container image.
    Image {
        /// The image.
        image: ImageOrigin,
        /// The image in the operator's words.
        text: String,
        /// What it says about its process.
        facts: ImageFacts,
    },
    /// Machines with a Debian package, by its name.
    Package(String),
    /// Machines with a Debian package that Everett does not know, and with its unit.
    Installed {
        /// Name of the package.
        package: String,
        /// Unit of its server.
        unit: Box<UnitFile>,
        /// Port at which it listened in a trial boot.
        found: Option<Listening>,
    },
    /// Machines with a program of the host.
    Program {
        /// Path of the program.
        path: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
    },
}

/// Requested properties of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Path of the world file to be. Paths in the draft start at its folder.
    pub output: PathBuf,
    /// Number of machines, from 1 to [`crate::NODES_MAX`]; `None` for one, or for those of a compose file.
    pub nodes: Option<usize>,
    /// TCP port at which the server serves, if the operator names it.
    pub port: Option<u16>,
}

/// Text of a world file that loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The text.
    pub text: String,
    /// The world that it describes.
    pub world: World,
    /// What Everett could not find out, one line each.
    pub notes: Vec<String>,
}

/// Writes a draft, and loads it.
///
/// # Errors
/// Returns an error of one line that names the file or the word at fault.
pub fn draft(machines: &Machines, wanted: &Wanted) -> Result<Draft, Error> {
    let Parts { text, notes } = match machines {
        Machines::Compose(file) => composed::draft(file, wanted)?,
        Machines::Image { image, text, facts } => machines::of_image(image, text, facts, wanted)?,
        Machines::Package(name) => machines::of_package(name, wanted)?,
        Machines::Installed { package, unit, found } => installed::draft(package, unit, *found, wanted),
        Machines::Program { path, arguments } => machines::of_program(path, arguments, wanted)?,
    };
    let world = crate::parse(&text, &wanted.output).map_err(Error::Unloadable)?;
    Ok(Draft { text, world, notes })
}

/// A draft before it was loaded.
struct Parts {
    text: String,
    notes: Vec<String>,
}

/// Returns how a world file at `output` names `path`: from its folder if `path` is below it, else absolutely.
fn named_from(output: &Path, path: &Path) -> Result<String, Error> {
    let real = |path: &Path| path.canonicalize().map_err(|source| Error::io(path, source));
    let (folder, path) = (real(crate::folder::folder_of(output))?, real(path)?);
    let text = path.strip_prefix(&folder).unwrap_or(&path).to_str();
    text.map(str::to_owned).ok_or_else(|| Error::NotText(path.clone()))
}

//! Writes drafts of world files. `everett init` makes one from a compose file, a container image, a Debian package or a
//! program.
//!
//! - this file: [`draft`] writes the text of a world file, and loads the text to check that it is valid
//! - `subject`: decides what the command's argument names
//! - `servers`: lists well-known servers: how they start, how they answer, where their state is
//! - `unit`: parses systemd's units, and finds listening ports; `installed`: writes machines with a package's own unit
//! - `machines`: writes machines with images, packages and programs; `composed`: writes settings that a compose file
//!   lacks
//! - `common`: writes tables that all drafts contain; `text`: writes strings and lists in TOML
//! - `elf`: checks that machines can run a program; `error`: reasons why no draft can be written
//!
//! Not here: writing the file, and reading an image's configuration.
//!
//! **Invariants.** Everett can load every draft. Text from outside (names, paths, images) occurs in a draft only in
//! TOML strings, never in comments.

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
use everett_input::file::folder_of;

use crate::World;

pub use elf::ElfError;
pub use error::Error;
pub use subject::{COMPOSE_FILES, Subject, compose_in};
pub use unit::{LISTENING_SCRIPT, UNITS_SCRIPT, UnitFile, listening, unit_of};

/// Settings of a container image's configuration that a draft depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageFacts {
    /// TCP ports on which the image's process listens, the lowest first.
    pub ports: Vec<u16>,
    /// True if the image has a healthcheck.
    pub has_healthcheck: bool,
}

/// A TCP port at which a program listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listening {
    /// Number of the port.
    pub port: u16,
    /// True if other machines can reach the port; false if only the program's own machine can.
    pub everywhere: bool,
}

/// Returns the Debian packages whose servers Everett knows, one package for each server.
pub fn packages() -> impl Iterator<Item = &'static str> {
    servers::SERVERS.iter().filter_map(|server| server.packages.first().copied())
}

/// Returns true if Everett knows the server in this Debian package.
#[must_use]
pub fn is_known_package(name: &str) -> bool {
    servers::of_package(name).is_some()
}

/// Source of the machines in a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Machines {
    /// Machines of the compose file with this path.
    Compose(PathBuf),
    /// Machines with a container image.
    Image {
        /// Source of the image.
        image: ImageOrigin,
        /// Text with which the operator named the image.
        text: String,
        /// Settings of the image's configuration.
        facts: ImageFacts,
    },
    /// Machines with the Debian package of this name.
    Package(String),
    /// Machines with a Debian package that Everett does not know but whose systemd unit it has found.
    Installed {
        /// Name of the package.
        package: String,
        /// Unit of the package's server.
        unit: Box<UnitFile>,
        /// Port at which the server listened in a trial boot.
        found: Option<Listening>,
    },
    /// Machines with a program of the host.
    Program {
        /// Path of the program.
        path: PathBuf,
        /// Arguments of the program.
        arguments: Vec<String>,
    },
}

/// The operator's wishes for a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Path at which the world file will be written. Relative paths in the draft start at the world file's folder.
    pub output: PathBuf,
    /// Number of machines, from 1 to [`crate::NODES_MAX`]. `None` means one, or the machines of the compose file.
    pub nodes: Option<usize>,
    /// TCP port on which the server listens, if the operator gives it.
    pub port: Option<u16>,
}

/// A draft that Everett has loaded to check that it is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Text of the world file.
    pub text: String,
    /// The world that the text describes.
    pub world: World,
    /// Notes for the operator about facts that Everett could not find out. Each is one line.
    pub notes: Vec<String>,
}

/// Writes a draft, and loads it to check that it is valid.
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

/// A draft before it is loaded.
struct Parts {
    text: String,
    notes: Vec<String>,
}

/// Returns `path` as a world file at `output` refers to it: relative to the world file's folder if `path` is below that
/// folder, and absolute otherwise.
fn named_from(output: &Path, path: &Path) -> Result<String, Error> {
    let real = |path: &Path| path.canonicalize().map_err(|source| Error::io(path, source));
    let (folder, path) = (real(folder_of(output))?, real(path)?);
    let text = path.strip_prefix(&folder).unwrap_or(&path).to_str();
    text.map(str::to_owned).ok_or_else(|| Error::NotText(path.clone()))
}

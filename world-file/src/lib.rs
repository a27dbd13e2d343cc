//! Reads world files in TOML, and compose files, whose services become machines.
//!
//! - this file: [`load`] reads a world file and resolves its paths; [`parse`] does the same for text in memory
//! - `cursor`: typed access to TOML values, with the path and the line of each key; `error`: what is wrong in a world
//!   file
//! - `image`, `container`, `node`, `disk`, `link`, `workload`, `sdk`, `probe`: each reads the table or key of this name
//!   (`container` reads a node's key `image`)
//! - `compose`: reads compose files; `composed`: settings of nodes that only compose files contain; `confinement`:
//!   checks the paths in compose files
//! - [`init`]: writes drafts of world files
//! - [`seal`]: reads worlds that came in finding files, and lists the host paths in a world file
//! - `command`: parses the settings of programs; `talk`: parses exchanges with a TCP port; `epoch`: parses dates;
//!   `paths`: parses paths
//! - `files`: reads host files that are put into guests
//!
//! Not here: running a world (`everett-session`) and building its image (`everett-guest-image`).
//!
//! **Invariants.** An unknown key is an error. Every error is one line, `file:line: key: what`; an error about the
//! whole file has no line or key. Reading never panics, whatever the bytes are, and every list and text has a named
//! bound. Everett reads only host files that the world file names, and the file `.env` beside a compose file. A
//! relative path never leaves the world file's folder, and no path in a compose file leaves the compose file's folder.

mod command;
mod compose;
mod composed;
mod confinement;
mod container;
mod cursor;
mod disk;
mod epoch;
mod error;
mod files;
mod image;
pub mod init;
mod link;
mod node;
mod paths;
mod probe;
mod sdk;
pub mod seal;
mod talk;
mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use everett_cpu::CpuModel;
use everett_explorer::config::ExploreConfig;
use everett_explorer::plan::draw::FaultConfig;
use everett_explorer::plan::{Names, NodeNames};
use everett_explorer::probe::ProbeConfig;
use everett_explorer::probe::limits::PROBES_MAX;
use everett_explorer::property::PropertyConfig;
use everett_explorer::property::limits::PROPERTIES_MAX;
use everett_image_origin::ImageOrigin;
use everett_input::file::{self as input, Reason};
use everett_vmm::clock::ClockMode;
use serde::Serialize;

pub use command::{Command, ImageProcess, Ready, Restart, Service};
pub use compose::listed;
pub use composed::{After, Bind, Composed, HostNames, HostOf, Port, STOP_GRACE_NS, Tmpfs, Ulimit};
pub use container::parse_image;
pub use disk::{DataDisk, Filesystem};
pub use error::Error;
pub use image::{ImageConfig, Root};
pub use link::Links;
pub use node::{FileEntry, Node};
pub use sdk::Sdk;
pub use seal::Seal;
pub use talk::Talk;
pub use workload::{Check, CheckKind, Driver, Workload};

use cursor::{Item, Source, Table};
use everett_input::causes::with_causes;
use everett_streams::{BootSeed, Seed};

/// Maximum size of a world file, in bytes.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of compose files that are merged into one world.
pub const COMPOSE_FILES_MAX: usize = 16;
/// Maximum number of nodes of a world.
pub const NODES_MAX: usize = everett_fault::limits::NODES_MAX;
/// Default date and time of the guests' clocks at boot.
pub const EPOCH_DEFAULT: &str = "2026-01-01T00:00:00Z";

/// Default of [`World::start_limit`]: number of times in a row that a service may end in the same way before the world
/// is ready.
pub const START_LIMIT: u32 = 5;

/// Events of a guest that advance vtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Vtime advances with retired instructions.
    Insn,
    /// Vtime advances with retired conditional branches.
    Branch,
    /// Vtime advances with exits: accesses to devices, and HLT.
    Exit,
}

impl Clock {
    /// Returns the clock mode of the world's machines.
    #[must_use]
    pub fn mode(self) -> ClockMode {
        match self {
            Clock::Insn => ClockMode::Insn,
            Clock::Branch => ClockMode::Branch,
            Clock::Exit => ClockMode::Exit,
        }
    }
}

/// A world as its file describes it. Defaults are filled in, and host paths are resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct World {
    /// Path of the world file, as the user gave it. This path is not part of the world's identity. The identity is
    /// a digest of everything that determines the world's timelines, except their seeds and fork paths.
    #[serde(skip)]
    pub file: PathBuf,
    /// Value of the guests' CLOCK_REALTIME at vtime 0, in seconds since 1970.
    pub epoch_unix_s: u64,
    /// Model of the virtual CPU.
    pub cpu: CpuModel,
    /// Events of a guest that advance vtime.
    pub clock: Clock,
    /// Seed of a run for which the command line gives no seed. It is not part of the world's identity.
    #[serde(skip)]
    pub seed: Option<Seed>,
    /// Seed for the boot of the world, until all services are ready.
    pub boot_seed: BootSeed,
    /// Number of times in a row that a service may end in the same way before the world is ready. After that, Everett
    /// gives the boot up as soon as a second condition shows that waiting is useless (`docs/guide.md`, "A world that
    /// does not come up"). 0 means no limit. If the world becomes ready, the limit has changed nothing in it.
    #[serde(skip)]
    pub start_limit: u32,
    /// Kernel and root filesystem of the nodes.
    pub image: ImageConfig,
    /// The nodes, in the order of the file. There is at least one.
    pub nodes: Vec<Node>,
    /// The network between the nodes.
    pub links: Links,
    /// Commands that put load on the world (drivers), checks, and the test template, a folder of test programs.
    pub workload: Workload,
    /// Settings of the SDK. If `None`, guests get no part of the SDK.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk: Option<Sdk>,
    /// Kinds, frequency and strength of the faults that explorations draw. A fault plan, i.e. a list
    /// of faults and their times, is not part of a world file.
    #[serde(skip)]
    pub faults: FaultConfig,
    /// Settings of explorations: bounds and strategy.
    #[serde(skip)]
    pub explore: ExploreConfig,
    /// Properties of this world. All worlds have the built-in properties, too.
    #[serde(skip)]
    pub properties: Vec<PropertyConfig>,
    /// Probes of this world, which explorations observe.
    #[serde(skip)]
    pub probes: Vec<ProbeConfig>,
    /// Notes for the operator about parts of the file that have no effect.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// Seal of a world from a finding file. A sealed world reads only files that were packed with it.
    #[serde(skip)]
    pub seal: Option<Arc<Seal>>,
    /// Compose files that are merged over `file`, in this order.
    #[serde(skip)]
    pub more_files: Vec<PathBuf>,
}

impl World {
    /// Returns the names to which a fault plan can refer.
    #[must_use]
    pub fn names(&self) -> Names {
        let of_node = |node: &Node| {
            let services: BTreeSet<String> =
                node.services.iter().map(|service| service.name.clone()).collect();
            let drivers = self.workload.drivers.iter().filter(|driver| driver.node == node.name);
            let units = services.iter().cloned().chain(drivers.map(|driver| driver.name.clone())).collect();
            // A node has only a few disks, so this does not saturate.
            let disks = node.disks.len() + usize::from(node.volumes_bytes.is_some());
            let disks = u32::try_from(disks).unwrap_or(u32::MAX);
            (node.name.clone(), NodeNames { disks, units, services })
        };
        self.nodes.iter().map(of_node).collect()
    }

    /// Returns the paths of the files that [`load`] read: `file`, and the files that are merged over it.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&*self.file).chain(self.more_files.iter().map(PathBuf::as_path))
    }

    /// Returns the file system of each data disk.
    pub fn filesystems(&self) -> impl Iterator<Item = Filesystem> {
        self.nodes.iter().flat_map(|node| node.disks.iter().map(|disk| disk.filesystem))
    }

    /// Returns the node with this name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }
}

/// Reads the world file at `file`. `file` can also be a list of compose files, in the form of the variable
/// `COMPOSE_FILE`: `compose.yaml:compose.prod.yaml`. Each compose file is merged over the files before it. Relative
/// paths start in the folder of the first file.
///
/// # Errors
/// Returns the first error: an unreadable or oversized file, a syntax error, an unknown key, a bad value or a missing
/// file.
pub fn load(file: &Path) -> Result<World, Error> {
    load_listed(file).map(|(world, _)| world)
}

/// Reads the world file at `file` as [`load`] does, and lists the host paths and variables that the file uses.
///
/// # Errors
/// See [`load`].
pub fn load_listed(file: &Path) -> Result<(World, seal::Inputs), Error> {
    let (mut world, seal, inputs) = seal::reading(file, || match compose::files(file) {
        None => parse(&read_file(file)?, file),
        Some(files) => compose::parse(&compose_texts(&read_files(&files)?), &variable),
    })?;
    world.seal = seal;
    Ok((world, inputs))
}

/// Reads compose files. Returns the path and text of each.
fn read_files(files: &[PathBuf]) -> Result<Vec<(PathBuf, String)>, Error> {
    if files.len() > COMPOSE_FILES_MAX {
        let what = format!("{} compose files; at most {COMPOSE_FILES_MAX} are merged", files.len());
        return Err(Error::whole(&files[0], what));
    }
    for file in files.iter().skip(1) {
        seal::note(file, file.file_name().map_or(file, Path::new));
    }
    files.iter().map(|file| Ok((file.clone(), read_file(file)?))).collect()
}

fn compose_texts(files: &[(PathBuf, String)]) -> Vec<compose::Text<'_>> {
    files.iter().map(|(file, text)| compose::Text { file, text }).collect()
}

/// Reads the text of a world file or a compose file.
fn read_file(file: &Path) -> Result<String, Error> {
    input::read_text(file, FILE_BYTES_MAX).map_err(|error| match error.reason {
        Reason::NotText(line) => Error { line: Some(line), ..Error::whole(file, "not UTF-8 text") },
        Reason::TooLong(most) => Error::whole(file, format!("a world file has at most {most} bytes")),
        Reason::Kind("a folder") => Error::whole(file, "this is a folder; name the world file in it"),
        reason => Error::whole(file, reason.to_string()),
    })
}

/// Reads a world from its text. `file` is the text's path, for errors and relative paths. If its name ends in `.yaml`
/// or `.yml`, the text is a compose file.
///
/// # Errors
/// See [`load`].
pub fn parse(text: &str, file: &Path) -> Result<World, Error> {
    if confinement::is_compose(file) {
        return compose::parse(&[compose::Text { file, text }], &variable);
    }
    let source = Source { file, text };
    let document = toml::de::DeTable::parse(text).map_err(|e| {
        let line = e.span().map(|span| source.line_at(span.start));
        Error { line, ..Error::whole(file, e.message()) }
    })?;
    let top = Table::root(&source, document.get_ref());
    let Some(item) = top.get("compose") else { return read(&top, file, None) };
    let paths = match item.list(usize::MAX) {
        Ok(list) => list.iter().map(paths::host).collect::<Result<Vec<_>, Error>>()?,
        Err(_) => vec![paths::host(&item)?],
    };
    if paths.is_empty() {
        return Err(item.error("there is no compose file"));
    }
    let texts = read_files(&paths)?;
    let compose = compose::Compose::new(&compose_texts(&texts), &variable)?;
    compose.without_block()?;
    read(&top, file, Some(compose))
}

/// Returns an environment variable for compose files. In a sealed world the value comes from the seal.
fn variable(name: &str) -> Option<String> {
    seal::variable(name)
}

/// Top-level keys of all world files. Other keys describe the machines.
const KEYS: [&str; 14] = [
    "epoch",
    "cpu",
    "clock",
    "seed",
    "boot_seed",
    "start_limit",
    "image",
    "link",
    "workload",
    "sdk",
    "faults",
    "explore",
    "property",
    "probe",
];

/// Reads a world. If `compose` is given, the machines come from this compose file.
fn read(top: &Table<'_>, file: &Path, compose: Option<compose::Compose<'_>>) -> Result<World, Error> {
    let of_machines: &[&str] = if compose.is_some() { &["compose", "images", "ready"] } else { &["node"] };
    top.only(&[&KEYS[..], of_machines].concat(), &[])?;
    let epoch_unix_s = match top.get("epoch") {
        Some(item) => epoch::parse_unix_s(&item.date_text()?).map_err(|what| item.error(what))?,
        None => epoch::parse_unix_s(EPOCH_DEFAULT).map_err(|what| top.error(what))?,
    };
    let cpu = match top.get("cpu") {
        None => CpuModel::default(),
        Some(item) => {
            let name = item.str()?;
            let unknown = |what| item.error(format!("the CPU model \"{name}\" does not exist: {what}"));
            name.parse().map_err(unknown)?
        }
    };
    let clock = match top.get("clock") {
        None => Clock::Insn,
        Some(item) => match item.str()? {
            "insn" => Clock::Insn,
            "branch" => Clock::Branch,
            "exit" => Clock::Exit,
            other => {
                return Err(item.error(format!(
                    "the clock mode \"{other}\" does not exist; there are \"insn\", \"branch\" and \"exit\""
                )));
            }
        },
    };
    let seed = top.get("seed").map(|item| item.u64()).transpose()?.map(Seed::new);
    let boot_seed =
        top.get("boot_seed").map(|item| item.u64()).transpose()?.map(BootSeed::new).unwrap_or_default();
    let start_limit = match top.get("start_limit") {
        None => START_LIMIT,
        Some(item) => u32::try_from(item.u64()?).unwrap_or(u32::MAX),
    };
    let image = image::read(top.get("image").map(|item| item.table()).transpose()?)?;

    let composition = match compose {
        None => compose::Composition { nodes: nodes(top, &image)?, apart: Vec::new(), notes: Vec::new() },
        Some(compose) => {
            let images = top.get("images").map(|item| images(&item)).transpose()?.unwrap_or_default();
            let mut composition = compose.machines(&images)?;
            if let Some(item) = top.get("ready") {
                readiness(&item, &mut composition.nodes)?;
            }
            composition
        }
    };
    let compose::Composition { nodes, apart, notes } = composition;
    let links = top.get("link").map(|item| item.list(link::LINKS_MAX)).transpose()?;
    let links = link::read(links, &nodes, apart)?;
    let workload = workload::read(top.get("workload").map(|item| item.table()).transpose()?, &nodes)?;
    let sdk = top.get("sdk").map(|item| sdk::read(&item.table()?)).transpose()?;
    let faults = match top.get("faults") {
        None => FaultConfig::default(),
        Some(item) => item.deserialize()?,
    };
    let explore = match top.get("explore") {
        None => ExploreConfig::default(),
        Some(item) => {
            let explore: ExploreConfig = item.deserialize()?;
            explore.check().map_err(|error| item.error(with_causes(&error)))?;
            explore
        }
    };
    let properties = match top.get("property") {
        None => Vec::new(),
        Some(list) => {
            let tables = list.list(PROPERTIES_MAX)?;
            tables.iter().map(|item| item.deserialize()).collect::<Result<Vec<PropertyConfig>, Error>>()?
        }
    };
    let probes = match top.get("probe") {
        None => Vec::new(),
        Some(list) => list.list(PROBES_MAX)?.iter().map(probe::read).collect::<Result<Vec<_>, Error>>()?,
    };
    let file = file.to_owned();
    let mut world = World {
        file,
        epoch_unix_s,
        cpu,
        clock,
        seed,
        boot_seed,
        start_limit,
        image,
        nodes,
        links,
        workload,
        sdk,
        faults,
        explore,
        properties,
        probes,
        notes,
        seal: None,
        more_files: Vec::new(),
    };
    compose::complete(&mut world);
    if let Some(item) = top.get("faults")
        && let Err(errors) = world.faults.check(&world.names())
        && let Some(error) = errors.first()
    {
        return Err(item.error(with_causes(error)));
    }
    Ok(world)
}

/// Reads all tables `[[node]]`.
fn nodes(top: &Table<'_>, image: &ImageConfig) -> Result<Vec<Node>, Error> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut files = files::Reader::default();
    let list = top.get("node").ok_or_else(|| top.error("a world needs at least one [[node]]"))?;
    for item in list.list(NODES_MAX)? {
        let (node, name) = node::read(&item.table()?, image, &mut files)?;
        if let Some(first) = nodes.iter().position(|other| other.name == node.name) {
            return Err(name.error(format!("node[{first}] is already named \"{}\"", node.name)));
        }
        nodes.push(node);
    }
    if nodes.is_empty() {
        return Err(list.error("a world needs at least one [[node]]"));
    }
    Ok(nodes)
}

/// Reads the key `images`, which replaces images of a compose file.
fn images(item: &Item<'_>) -> Result<BTreeMap<String, ImageOrigin>, Error> {
    let entries: Vec<_> = item.table()?.entries().collect();
    entries.into_iter().map(|(name, item)| Ok((name, container::read(&item)?))).collect()
}

/// Reads the key `ready`, which gives machines of a compose file readiness checks.
fn readiness(item: &Item<'_>, nodes: &mut [Node]) -> Result<(), Error> {
    for (name, item) in item.table()?.entries() {
        let Some(node) = nodes.iter_mut().find(|node| node.name == name) else {
            return Err(item.error(format!("there is no machine \"{}\"", name.escape_debug())));
        };
        // A machine of a compose file has exactly one service.
        for service in &mut node.services {
            if service.is_job {
                return Err(item.error("the service does its work once, and is ready when it has ended"));
            }
            service.ready = Some(command::ready(&item)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

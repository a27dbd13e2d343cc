//! The run directory of an exploration, and its world (image, boot, seed, properties), prepared so that branches can
//! run.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use everett_explorer::length_defaults::LengthDefaults;
use everett_explorer::run::{
    Difference, Finding, Header, Merged, Reading, Record, SCHEMA_VERSION, StrategyName,
};
use everett_explorer::search::strategy::StrategyKind;
use everett_host::interrupt::Interrupt;
use everett_remote::Access;
use everett_streams::Seed;
use everett_world_file::seal::{self, Inputs};
use everett_world_file::{Seal, World};
use serde_json::{Value, json};

use super::abstractions::Abstractions;
use super::id::Id;
use super::setting::Setting;
use crate::machines::engines::{Asked, Engine, EngineChoice};
use crate::machines::{EngineKind, EngineOptions};
use crate::output::progress::Progress;
use crate::run::booted::{self, Wanted};
use crate::run::prepared;
use crate::world::identity::{MACHINE_VERSION, check_version};

/// World that is ready to be explored.
pub struct Explored {
    /// Setting that all branches share: the booted world, the seed and the declared properties.
    pub setting: Setting,
    /// Header of the run directory.
    pub header: Header,
}

/// Gets the image and the stored boot of a world, and makes the setting of its branches.
///
/// # Errors
/// Returns an error if a declaration of the world is invalid, if the image cannot be built or booted, or if `interrupt` is
/// raised.
pub fn prepare(
    progress: &dyn Progress,
    access: &dyn Access,
    world: World,
    seed: Option<Seed>,
    options: EngineOptions,
    interrupt: &Interrupt,
) -> anyhow::Result<Explored> {
    // An invalid property is reported here, before an image is built.
    Abstractions::new(&world)?;
    let mut prepared = prepared::prepare(progress, access, world, options, interrupt)?;
    let booted = booted::get(progress, &prepared.launcher, &prepared.moment_folder, Wanted::Both, interrupt)?;
    let points = booted.restart.clone().context("the world has no restart points")?;
    let seed = prepared.seed(seed);
    prepared.launcher.from = None;
    let setting = Setting::new(prepared.launcher, &booted, points, &prepared.image, seed)?;
    let header = header(&setting, &prepared.image)?;
    Ok(Explored { setting, header })
}

fn header(setting: &Setting, image: &str) -> anyhow::Result<Header> {
    let world = &setting.launcher.world;
    let real = |file: &Path| std::fs::canonicalize(file).with_context(|| file.display().to_string());
    let files = world.files().map(real).collect::<anyhow::Result<Vec<_>>>()?;
    let file = everett_world_file::listed(files.iter().map(PathBuf::as_path));
    Ok(Header {
        schema_version: SCHEMA_VERSION,
        everett: env!("CARGO_PKG_VERSION").to_owned(),
        machine_version: MACHINE_VERSION.to_owned(),
        identity: setting.identity.hex(),
        image: image.to_owned(),
        world_file: file.display().to_string(),
        world: recorded(world),
        seed: setting.seed,
        strategy: StrategyName(world.explore.strategy.name().to_owned()),
        in_flight: world.explore.in_flight(),
        root_ns: setting.root_ns,
        segment_ns: world.explore.segment.0,
        horizon_ns: world.explore.horizon.0,
        nodes: world.nodes.iter().map(|node| node.name.clone()).collect(),
        engine: EngineKind::Soft.name().to_owned(),
        exact: true,
    })
}

/// Returns the tables of a world file as JSON, in the form in which the header of a run directory records them.
#[must_use]
pub fn recorded(world: &World) -> Value {
    let mut tables = json!({
        "world": world,
        "faults": world.faults,
        "explore": world.explore,
        "property": world.properties,
        "history": world.workload.history,
    });
    // Runs of worlds without probes have no such table.
    if !world.probes.is_empty() {
        tables["probe"] = json!(world.probes);
    }
    tables
}

/// Returns the engine options for a world. Probes are breakpoints, which only the soft engine has.
///
/// # Errors
/// Returns an error if another engine was asked for.
pub fn for_probes(world: &World, asked: Asked) -> anyhow::Result<Asked> {
    if world.probes.is_empty() {
        return Ok(asked);
    }
    if asked.engine == EngineChoice::Kvm {
        bail!(
            "{}: probe: /dev/kvm has no breakpoints; the soft engine has them, and runs the same branches",
            world.file.display()
        );
    }
    Ok(Asked { engine: EngineChoice::Soft, ..asked })
}

/// Loads the world of a run directory again from its world file. The strategy, and settings that the world file omits,
/// get the values that the run directory records. Also returns the host files that the world file names.
///
/// # Errors
/// Returns an error if the world file is invalid or cannot be read.
pub fn load_again(header: &Header) -> anyhow::Result<(World, Inputs)> {
    let (mut world, inputs) = everett_world_file::load_listed(Path::new(&header.world_file))?;
    world.explore.strategy = header.strategy.0.parse::<StrategyKind>()?;
    world.explore.set_absent(recorded_defaults(header));
    Ok((world, inputs))
}

/// Returns the recorded values of settings that the world file may omit.
#[must_use]
pub fn recorded_defaults(header: &Header) -> LengthDefaults {
    let checks = header.world.pointer("/explore/checks").and_then(Value::as_u64);
    let checks = checks.and_then(|checks| u32::try_from(checks).ok());
    LengthDefaults { in_flight: header.in_flight, checks: checks.unwrap_or(LengthDefaults::default().checks) }
}

/// Returns the error for a world that was imported with a finding, but is not the world in which the finding was made.
/// `difference` says what differs.
fn changed_since_export(header: &Header, seal: &Seal, difference: &Difference) -> anyhow::Error {
    let folder = seal::beside(Path::new(&header.world_file));
    let is_other = |(name, digest): &(&String, &String)| {
        let content = everett_input::file::read(&folder.join(name), SEALED_BYTES_MAX);
        content.map_or(true, |content| blake3::hash(&content).to_hex().as_str() != digest.as_str())
    };
    if let Some((name, _)) = seal.files.iter().find(is_other) {
        let file = folder.join(name);
        return anyhow!(
            "{}: the file has changed since the finding was exported: {difference}",
            file.display()
        );
    }
    if difference.field == "image" && seal.images.is_none() {
        return anyhow!(
            "{}: the images built here are not those of the finding ({difference}): this Everett has another agent \
             than the one that exported it; the finding must come with its images",
            header.world_file
        );
    }
    anyhow!("{}: another version of Everett made the finding: {difference}", header.world_file)
}

/// Maximum size of a file in an imported world, in bytes.
const SEALED_BYTES_MAX: u64 = 16 << 20;

/// Run directory of an exploration, with its merged results.
pub struct RunDirectory {
    /// Reader of the run directory.
    pub reading: Reading,
    /// Results merged from the recorded branches.
    pub merged: Merged,
}

impl RunDirectory {
    /// Opens a run directory in order to run branches again.
    ///
    /// # Errors
    /// Returns an error if the run directory is damaged, or if another machine version wrote it.
    pub fn open(folder: &Path) -> anyhow::Result<RunDirectory> {
        check_version(folder, &Header::read(folder)?.machine_version)?;
        RunDirectory::read(folder)
    }

    /// Opens a run directory of any machine version for display.
    ///
    /// # Errors
    /// Returns an error if the run directory is damaged.
    pub fn read(folder: &Path) -> anyhow::Result<RunDirectory> {
        let (reading, merged) = Reading::open_merged(folder)?;
        Ok(RunDirectory { reading, merged })
    }

    /// Returns the finding with this number.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn finding(&self, id: u32) -> anyhow::Result<&Finding> {
        let found = self.merged.findings().iter().find(|finding| finding.id == id);
        found.with_context(|| match self.merged.findings().len() {
            0 => format!("there is no finding {id}: nothing was found"),
            count => format!("there is no finding {id}; they are numbered from 1 to {count}"),
        })
    }

    /// Returns the record (the stored result) of a branch. For a finding, returns the record of its first branch.
    ///
    /// # Errors
    /// Returns an error if there is no such finding or branch, or if the run directory is damaged.
    pub fn record(&self, id: Id) -> anyhow::Result<Record> {
        let choice = match id {
            Id::Finding(id) => self.finding(id)?.first,
            Id::Branch(choice) => choice,
        };
        let record = self.reading.get(choice)?;
        record.with_context(|| format!("there is no branch {choice}; {} are recorded", self.reading.len()))
    }

    /// Returns the setting in which the branches ran, and the engine that runs them here.
    ///
    /// # Errors
    /// Returns an error if the world has changed, and in the cases of [`prepare`].
    pub fn setting(
        &self,
        progress: &dyn Progress,
        access: &dyn Access,
        asked: Asked,
        interrupt: &Interrupt,
    ) -> anyhow::Result<(Setting, Engine)> {
        let there = self.reading.header();
        let (world, _) = load_again(there)?;
        let sealed = world.seal.clone();
        let engine = Engine::choose(for_probes(&world, asked)?, world.clock, world.cpu)?;
        let options = engine.options(EngineOptions::default());
        let Explored { setting, mut header } =
            prepare(progress, access, world, Some(there.seed), options, interrupt)?;
        // The branches may run on another engine than in the exploration, so the comparison ignores whether the engines
        // are exact.
        header.exact = there.exact;
        if let Err(difference) = there.same_exploration(&header) {
            if let Some(seal) = sealed {
                return Err(changed_since_export(there, &seal, &difference));
            }
            bail!("{}: the world has changed since it was explored: {difference}", there.world_file);
        }
        Ok((setting, engine))
    }
}

//! Opens the run directory of an exploration, and prepares its world (image, boot, seed, properties) so that branches
//! can run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use everett_explorer::coverage::Gaps;
use everett_explorer::length_defaults::LengthDefaults;
use everett_explorer::run::{
    Difference, Finding, Header, Merged, Reading, Record, SCHEMA_VERSION, StrategyName,
};
use everett_explorer::search::strategy::StrategyKind;
use everett_host::interrupt::Interrupt;
use everett_report::exploration::{About, Report};
use everett_session::explore::abstractions::Abstractions;
use everett_session::explore::setting::Setting;
use everett_session::machines::engines::{Asked, Engine, EngineChoice};
use everett_session::machines::{EngineKind, EngineOptions};
use everett_session::run::booted::{self, Wanted};
use everett_session::world::identity::{MACHINE_VERSION, check_version};
use everett_streams::Seed;
use everett_world_file::seal::{self, Inputs};
use everett_world_file::{Seal, World};
use serde_json::{Value, json};

use super::common;
use super::id::Id;
use crate::ui::{Ui, style};

/// World that is ready to be explored.
pub(super) struct Explored {
    /// Setting that all branches share: the booted world, the seed and the declared properties.
    pub(super) setting: Setting,
    /// Header of the run directory.
    pub(super) header: Header,
}

/// Gets the image and the stored boot of a world, and makes the setting of its branches.
pub(super) fn prepare(
    ui: &Ui,
    world: World,
    seed: Option<Seed>,
    options: EngineOptions,
    interrupt: &Interrupt,
) -> anyhow::Result<Explored> {
    // An invalid property is reported here, before an image is built.
    Abstractions::new(&world)?;
    let mut prepared = common::prepare(ui, world, options, interrupt)?;
    let booted = booted::get(ui, &prepared.launcher, &prepared.moment_folder, Wanted::Both, interrupt)?;
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
pub(super) fn recorded(world: &World) -> Value {
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
pub(super) fn for_probes(world: &World, asked: Asked) -> anyhow::Result<Asked> {
    if world.probes.is_empty() {
        return Ok(asked);
    }
    if asked.engine == EngineChoice::Kvm {
        bail!(
            "{}: probe: /dev/kvm has no breakpoints; use --engine soft, which runs the same branches",
            world.file.display()
        );
    }
    Ok(Asked { engine: EngineChoice::Soft, ..asked })
}

/// Loads the world of a run directory again from its world file. The strategy, and settings that the world file omits,
/// get the values that the run directory records. Also returns the host files that the world file names.
pub(super) fn load_again(header: &Header) -> anyhow::Result<(World, Inputs)> {
    let (mut world, inputs) = everett_world_file::load_listed(Path::new(&header.world_file))?;
    world.explore.strategy = header.strategy.0.parse::<StrategyKind>()?;
    world.explore.set_absent(recorded_defaults(header));
    Ok((world, inputs))
}

/// Returns the world of a run directory if its file is readable and its tables equal the recorded ones.
fn unchanged(header: &Header) -> Option<World> {
    let (world, _) = load_again(header).ok()?;
    (recorded(&world) == header.world).then_some(world)
}

/// Returns the recorded values of settings that the world file may omit.
pub(super) fn recorded_defaults(header: &Header) -> LengthDefaults {
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
             than the one that exported it; on that host, export the finding with --with-images",
            header.world_file
        );
    }
    anyhow!("{}: another version of Everett made the finding: {difference}", header.world_file)
}

/// Maximum size of a file in an imported world, in bytes.
const SEALED_BYTES_MAX: u64 = 16 << 20;

/// Run directory of an exploration, with its merged results.
pub(super) struct Run {
    /// Reader of the run directory.
    pub(super) reading: Reading,
    /// Results merged from the recorded branches.
    pub(super) merged: Merged,
}

impl Run {
    /// Opens a run directory for commands that run branches again. Fails if another machine version wrote it.
    pub(super) fn open(folder: &Path) -> anyhow::Result<Run> {
        check_version(folder, &Header::read(folder)?.machine_version)?;
        Run::read(folder)
    }

    /// Opens a run directory of any machine version for display.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Run> {
        let (reading, merged) = Reading::open_merged(folder)?;
        Ok(Run { reading, merged })
    }

    pub(super) fn finding(&self, id: u32) -> anyhow::Result<&Finding> {
        let found = self.merged.findings().iter().find(|finding| finding.id == id);
        found.with_context(|| match self.merged.findings().len() {
            0 => format!("there is no finding {id}: nothing was found"),
            count => format!("there is no finding {id}; they are numbered from 1 to {count}"),
        })
    }

    /// Returns the record (the stored result) of a branch. For a finding, returns the record of its first branch.
    pub(super) fn record(&self, id: Id) -> anyhow::Result<Record> {
        let choice = match id {
            Id::Finding(id) => self.finding(id)?.first,
            Id::Branch(choice) => choice,
        };
        let record = self.reading.get(choice)?;
        record.with_context(|| format!("there is no branch {choice}; {} are recorded", self.reading.len()))
    }

    /// Returns the setting in which the branches ran. Fails if the world has changed.
    pub(super) fn setting(
        &self,
        ui: &Ui,
        asked: Asked,
        interrupt: &Interrupt,
    ) -> anyhow::Result<(Setting, Engine)> {
        let there = self.reading.header();
        let (world, _) = load_again(there)?;
        let sealed = world.seal.clone();
        let engine = Engine::choose(for_probes(&world, asked)?, world.clock)?;
        let options = engine.options(EngineOptions::default());
        let Explored { setting, mut header } = prepare(ui, world, Some(there.seed), options, interrupt)?;
        // This command may use another engine than the exploration did, so the comparison ignores whether the engines
        // are exact.
        header.exact = there.exact;
        if let Err(difference) = there.same_exploration(&header) {
            if let Some(seal) = sealed {
                return Err(changed_since_export(there, &seal, &difference));
            }
            bail!("{}: the world has changed since it was explored: {difference}", there.world_file);
        }
        if !there.exact {
            ui.say(style::paint(
                style::BAD,
                "this exploration is INEXACT: its results may depend on its host",
            ))?;
        }
        Ok((setting, engine))
    }

    /// Returns the report. It lists no gaps (faults, values and orders of events that never occurred) if the world file
    /// is gone or has changed.
    pub(super) fn report(&self, name: &str, known: &Known) -> Report {
        let waiting = self.reading.len().saturating_sub(self.merged.branches());
        let Known { gaps, sometimes, .. } = known;
        let about = About { run: name, end: self.reading.end(), gaps: gaps.as_ref(), sometimes, waiting };
        Report::of(self.reading.header(), &self.merged, &about)
    }

    /// Returns declarations of the world file. They are empty if the file no longer declares the explored world.
    pub(super) fn known(&self) -> Known {
        let header = self.reading.header();
        let world = unchanged(header);
        let looked = world.and_then(|world| Some((Abstractions::new(&world).ok()?, world)));
        let Some((Abstractions { abstraction, properties, .. }, world)) = looked else {
            return Known::default();
        };
        let enabled: BTreeSet<String> = world.faults.enabled().map(|kind| kind.name().to_owned()).collect();
        Known {
            gaps: Some(Gaps::of(self.merged.coverage(), &abstraction, &enabled)),
            sometimes: properties.sometimes().map(str::to_owned).collect(),
            enabled: enabled.into_iter().collect(),
        }
    }
}

/// Declarations of the explored world. Empty if its file is unreadable or declares another world by now.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Gaps of coverage.
    pub(super) gaps: Option<Gaps>,
    /// Names of the declared `sometimes` properties.
    pub(super) sometimes: BTreeSet<String>,
    /// Names of the enabled kinds of faults.
    pub(super) enabled: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_that_has_changed_is_not_the_one_that_was_explored() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("world.toml");
        let text = "[[node]]\nname = \"a\"\n[[property]]\nname = \"p\"\nnever = \"bad\"\n";
        std::fs::write(&file, text).unwrap();
        let mut world = common::load(&file).unwrap();
        let defaults = LengthDefaults { in_flight: 7, checks: 30 };
        world.explore.strategy = StrategyKind::Uniform;
        world.explore.set_absent(defaults);
        let header = Header {
            schema_version: SCHEMA_VERSION,
            everett: String::new(),
            machine_version: MACHINE_VERSION.to_owned(),
            identity: String::new(),
            image: String::new(),
            world_file: file.display().to_string(),
            world: recorded(&world),
            seed: Seed::new(1),
            strategy: StrategyName(StrategyKind::Uniform.name().to_owned()),
            in_flight: defaults.in_flight,
            root_ns: 0,
            segment_ns: world.explore.segment.0,
            horizon_ns: world.explore.horizon.0,
            nodes: vec!["a".to_owned()],
            engine: EngineKind::Soft.name().to_owned(),
            exact: true,
        };
        assert!(unchanged(&header).is_some());
        for more in
            ["[[property]]\nname = \"q\"\nsometimes = \"good\"\n", "[faults.pause]\nenabled = false\n"]
        {
            std::fs::write(&file, text.to_owned() + more).unwrap();
            assert!(load_again(&header).is_ok(), "{more}");
            assert!(unchanged(&header).is_none(), "{more}");
        }
        std::fs::remove_file(&file).unwrap();
        assert!(unchanged(&header).is_none());
    }
}

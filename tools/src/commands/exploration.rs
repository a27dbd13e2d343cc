//! What the commands around an exploration begin with: its run directory, and the setting in which its branches are run.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, bail};
use everett_explorer::coverage::Gaps;
use everett_explorer::fit::Fit;
use everett_explorer::report::{About, Report};
use everett_explorer::run::{Finding, Header, Merged, Reading, Record, SCHEMA_VERSION, StrategyName};
use everett_explorer::search::strategy::StrategyKind;
use everett_host::interrupt::Interrupt;
use everett_session::booted::{self, Wanted};
use everett_session::engines::{Asked, Engine};
use everett_session::explore::lens::Lens;
use everett_session::explore::setting::Setting;
use everett_session::identity::{MACHINE_VERSION, check_version};
use everett_session::machines::{EngineKind, EngineOptions};
use everett_session::world_file::World;
use serde_json::{Value, json};

use super::common;
use crate::cli::Id;
use crate::ui::{Ui, style};

/// A world that can be explored.
pub(super) struct Explored {
    /// What its branches share.
    pub(super) setting: Setting,
    /// What a run directory says of it.
    pub(super) header: Header,
}

/// Build or find the image of a world, boot it or find its boot, and put together what its branches share.
pub(super) fn prepare(
    ui: &Ui,
    world: World,
    seed: Option<u64>,
    options: EngineOptions,
    interrupt: &Interrupt,
) -> anyhow::Result<Explored> {
    // Nobody has to wait for an image to learn that a property is none.
    Lens::new(&world)?;
    let mut prepared = common::prepare(ui, world, options, interrupt)?;
    let booted = booted::get(ui, &prepared.launcher, &prepared.shelf, Wanted::Both, interrupt)?;
    let points = booted.restart.clone().context("the world has no restart points")?;
    let seed = prepared.seed(seed);
    prepared.launcher.from = None;
    let setting = Setting::new(prepared.launcher, &booted, points, &prepared.image, seed)?;
    let header = header(&setting, &prepared.image)?;
    Ok(Explored { setting, header })
}

fn header(setting: &Setting, image: &str) -> anyhow::Result<Header> {
    let world = &setting.launcher.world;
    let file = std::fs::canonicalize(&world.file).with_context(|| world.file.display().to_string())?;
    Ok(Header {
        schema_version: SCHEMA_VERSION,
        everett: env!("CARGO_PKG_VERSION").to_owned(),
        machine_version: MACHINE_VERSION.to_owned(),
        identity: setting.identity.hex(),
        image: image.to_owned(),
        world_file: file.display().to_string(),
        world: json!({
            "world": world,
            "faults": world.faults,
            "explore": world.explore,
            "property": world.properties,
            "history": world.workload.history,
        }),
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

/// What a run directory's exploration had where its world leaves it open.
pub(super) fn recorded_fit(header: &Header) -> Fit {
    let checks = header.world.pointer("/explore/checks").and_then(Value::as_u64);
    let checks = checks.and_then(|checks| u32::try_from(checks).ok());
    Fit { in_flight: header.in_flight, checks: checks.unwrap_or(Fit::default().checks) }
}

/// An exploration's run directory, and what is known from it.
pub(super) struct Run {
    /// The folder.
    pub(super) reading: Reading,
    /// What was made of its branches.
    pub(super) merged: Merged,
}

impl Run {
    /// Reads it, to run its branches again: it is of this machine version.
    pub(super) fn open(folder: &Path) -> anyhow::Result<Run> {
        check_version(folder, &Header::read(folder)?.machine_version)?;
        Run::read(folder)
    }

    /// Reads it, to show what it says: it may be of any machine version.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Run> {
        let (reading, merged) = Reading::open_merged(folder)?;
        Ok(Run { reading, merged })
    }

    /// A finding.
    pub(super) fn finding(&self, id: u32) -> anyhow::Result<&Finding> {
        let found = self.merged.findings().iter().find(|finding| finding.id == id);
        found.with_context(|| match self.merged.findings().len() {
            0 => format!("there is no finding {id}: nothing was found"),
            count => format!("there is no finding {id}; they are numbered from 1 to {count}"),
        })
    }

    /// The branch of a finding, or a branch.
    pub(super) fn record(&self, id: Id) -> anyhow::Result<Record> {
        let choice = match id {
            Id::Finding(id) => self.finding(id)?.first,
            Id::Branch(choice) => choice,
        };
        let record = self.reading.get(choice)?;
        record.with_context(|| format!("there is no branch {choice}; {} are recorded", self.reading.len()))
    }

    /// The setting of its branches, if its world is still what it was.
    pub(super) fn setting(
        &self,
        ui: &Ui,
        asked: Asked,
        interrupt: &Interrupt,
    ) -> anyhow::Result<(Setting, Engine)> {
        let there = self.reading.header();
        let mut world = common::load(Path::new(&there.world_file))?;
        world.explore.strategy = there.strategy.0.parse::<StrategyKind>()?;
        world.explore.fit(recorded_fit(there));
        let engine = Engine::choose(asked, world.clock)?;
        let options = engine.options(EngineOptions::default());
        let Explored { setting, mut header } = prepare(ui, world, Some(there.seed), options, interrupt)?;
        // What one engine has done another may look at again.
        header.exact = there.exact;
        if let Err(difference) = there.same_exploration(&header) {
            bail!("{}: it is not the world that was explored any more: {difference}", there.world_file);
        }
        if !there.exact {
            ui.say(style::paint(
                style::BAD,
                "this exploration is INEXACT: its host may show in what it recorded",
            ))?;
        }
        Ok((setting, engine))
    }

    /// Everything that can be said of it. Without its world file, gaps are not known.
    pub(super) fn report(&self, name: &str) -> Report {
        let header = self.reading.header();
        let world = common::load(Path::new(&header.world_file));
        let looked = world.and_then(|world| Ok((Lens::new(&world)?, world)));
        let (gaps, sometimes) = match looked {
            Ok((Lens { abstraction, properties, .. }, world)) => {
                let enabled = world.faults.enabled().map(|kind| kind.name().to_owned()).collect();
                let gaps = Gaps::of(self.merged.coverage(), &abstraction, &enabled);
                (Some(gaps), properties.sometimes().map(str::to_owned).collect())
            }
            Err(_) => (None, BTreeSet::new()),
        };
        let waiting = self.reading.len().saturating_sub(self.merged.branches());
        let about =
            About { run: name, end: self.reading.end(), gaps: gaps.as_ref(), sometimes: &sometimes, waiting };
        Report::of(header, &self.merged, &about)
    }
}

//! Opens the run directory of an exploration for commands, with the access to registries and the reports of this program.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::path::Path;

use everett_explorer::coverage::Gaps;
use everett_explorer::run::Header;
use everett_host::interrupt::Interrupt;
use everett_report::exploration::{About, Report};
use everett_session::explore::abstractions::Abstractions;
use everett_session::explore::run_directory::{self, RunDirectory};
pub(super) use everett_session::explore::run_directory::{
    Explored, for_probes, load_again, recorded, recorded_defaults,
};
use everett_session::explore::setting::Setting;
use everett_session::machines::EngineOptions;
use everett_session::machines::engines::{Asked, Engine};
use everett_streams::Seed;
use everett_world_file::World;

use crate::features;
use crate::ui::{Ui, style};

/// Gets the image and the stored boot of a world, and makes the setting of its branches.
pub(super) fn prepare(
    ui: &Ui,
    world: World,
    seed: Option<Seed>,
    options: EngineOptions,
    interrupt: &Interrupt,
) -> anyhow::Result<Explored> {
    run_directory::prepare(ui, features::access(), world, seed, options, interrupt)
}

/// Returns the world of a run directory if its file is readable and its tables equal the recorded ones.
fn unchanged(header: &Header) -> Option<World> {
    let (world, _) = load_again(header).ok()?;
    (recorded(&world) == header.world).then_some(world)
}

/// Run directory of an exploration, with its merged results.
pub(super) struct Run(pub(super) RunDirectory);

impl Deref for Run {
    type Target = RunDirectory;

    fn deref(&self) -> &RunDirectory {
        &self.0
    }
}

impl DerefMut for Run {
    fn deref_mut(&mut self) -> &mut RunDirectory {
        &mut self.0
    }
}

impl Run {
    /// Opens a run directory for commands that run branches again. Fails if another machine version wrote it.
    pub(super) fn open(folder: &Path) -> anyhow::Result<Run> {
        Ok(Run(RunDirectory::open(folder)?))
    }

    /// Opens a run directory of any machine version for display.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Run> {
        Ok(Run(RunDirectory::read(folder)?))
    }

    /// Returns the setting in which the branches ran. Fails if the world has changed.
    pub(super) fn setting(
        &self,
        ui: &Ui,
        asked: Asked,
        interrupt: &Interrupt,
    ) -> anyhow::Result<(Setting, Engine)> {
        let found = self.0.setting(ui, features::access(), asked, interrupt)?;
        if !self.reading.header().exact {
            ui.say(style::paint(
                style::BAD,
                "this exploration is INEXACT: its results may depend on its host",
            ))?;
        }
        Ok(found)
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
    use everett_explorer::length_defaults::LengthDefaults;
    use everett_explorer::run::{SCHEMA_VERSION, StrategyName};
    use everett_explorer::search::strategy::StrategyKind;
    use everett_session::machines::EngineKind;
    use everett_session::world::identity::MACHINE_VERSION;

    use super::super::common;
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

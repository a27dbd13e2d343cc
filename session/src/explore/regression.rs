//! Regression files. Each stores a finding, which a project's tests replay after a change.
//!
//! A regression file contains the path of a world file, a seed, a fault plan and the violated property. As long as
//! world and image are unchanged, it replays the same timeline bit for bit. After a change, it applies the same fault
//! plan to the changed world.

use std::fs;
use std::path::{Component, Path as FilePath, PathBuf};

use anyhow::{Context, bail};
use everett_explorer::config::ExploreConfig;
use everett_explorer::fate::BranchEnd;
use everett_explorer::plan::limits::PLAN_BYTES_MAX;
use everett_explorer::plan::{Names, Plan};
use everett_explorer::search::strategy::StrategyKind;
use everett_explorer::search::{Fork, Path};
use everett_streams::Seed;
use serde::{Deserialize, Serialize};

use super::path_runner::Route;
use super::setting::Setting;
use super::shrink::{ShrinkEnd, Shrunk, Wanted};
use crate::output::replace::replace;
use crate::world::identity::check_timeline;

/// Format version of regression files. Everett refuses files of other versions.
const SCHEMA_VERSION: u32 = 1;
/// Maximum length of a regression file, in bytes.
const FILE_BYTES_MAX: u64 = 2 * PLAN_BYTES_MAX as u64;

/// Contents of a regression file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regression {
    /// Format version of the file.
    pub schema_version: u32,
    /// Path of the world file, relative to the regression file's folder. If the path leads to no file,
    /// [`Regression::world_file`] looks for a world file of the same name in the regression file's folder.
    pub world: PathBuf,
    /// Name of the timeline that has the finding.
    pub timeline: String,
    /// Digest of this timeline's trail. A replay has the same digest if world and image are unchanged.
    pub trail: String,
    /// Seed of the timeline.
    pub seed: Seed,
    /// Forks of the timeline.
    pub path: Path,
    /// Duration of the workload after *ready* (all services are up), in nanoseconds of vtime.
    pub for_ns: u64,
    /// True if checks follow the workload.
    pub checked: bool,
    /// Share of branches with checks in the exploration, in parts per million. The timeline's name depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<u32>,
    /// Strategy of the exploration. The timeline's name depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<StrategyKind>,
    /// Fault plan, one entry per element.
    pub plan: Vec<serde_json::Value>,
    /// True if the finding needs each fault of the plan. False if shrinking ended early.
    #[serde(default = "is_minimal")]
    pub minimal: bool,
    /// Violated property.
    pub property: String,
    /// Description of the finding, for people.
    pub text: String,
}

/// Value of `minimal` in files of older versions, which lack the field. Their plans were always minimal.
fn is_minimal() -> bool {
    true
}

impl Regression {
    /// Creates the regression file of a shrunk finding. The caller will write it into `folder`.
    ///
    /// # Errors
    /// Returns an error if the path of the world file cannot be resolved, or if the finding's route (path, fault plan
    /// and end of the last branch) has no plan or no end.
    pub fn of(setting: &Setting, shrunk: &Shrunk, folder: &FilePath) -> anyhow::Result<Regression> {
        let Route { path, plan, end } = &shrunk.route;
        let (plan, end) =
            plan.as_ref().zip(end.as_ref()).context("the finding's route has no plan or no end")?;
        let lines = plan.write();
        let lines = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(Regression {
            schema_version: SCHEMA_VERSION,
            world: all_from_folder(&setting.launcher.world, folder)?,
            timeline: setting.name(path),
            trail: shrunk.trail.clone(),
            seed: setting.seed,
            path: path.clone(),
            for_ns: end.at_ns.saturating_sub(setting.root_ns),
            checked: end.checked,
            checks: Some(setting.launcher.world.explore.checks()),
            strategy: Some(setting.launcher.world.explore.strategy),
            plan: lines,
            minimal: shrunk.why == ShrinkEnd::Minimal,
            property: shrunk.found.hit.property.clone(),
            text: shrunk.found.hit.text.clone(),
        })
    }

    /// Writes the file. An existing file is replaced.
    ///
    /// # Errors
    /// Returns an error if the file would be longer than Everett reads, or if [`replace`] fails.
    pub fn write(&self, file: &FilePath) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        if text.len() as u64 > FILE_BYTES_MAX {
            bail!("{}: the plan is too long for a regression file ({} bytes)", file.display(), text.len());
        }
        replace(file, &text)
    }

    /// Reads a regression file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is invalid, or if its format version or machine version differs
    /// from this program's.
    pub fn read(file: &FilePath) -> anyhow::Result<Regression> {
        let here = || file.display().to_string();
        let text = everett_input::file::read_text(file, FILE_BYTES_MAX)?;
        let regression: Regression = serde_json::from_str(&text).with_context(here)?;
        if regression.schema_version != SCHEMA_VERSION {
            let version = regression.schema_version;
            bail!(
                "{}: format version {version}; this Everett reads format version {SCHEMA_VERSION}",
                file.display()
            );
        }
        check_timeline(file, &regression.timeline)?;
        Ok(regression)
    }

    /// Returns the path of the world file for the regression file `file`. Returns `named` without a check if it is
    /// given. Otherwise looks at the recorded path, and then in the folder of `file`, in case the two files were copied
    /// together.
    ///
    /// # Errors
    /// Returns an error if the world file is at neither place.
    pub fn world_file(&self, file: &FilePath, named: Option<&FilePath>) -> anyhow::Result<PathBuf> {
        if let Some(named) = named {
            return Ok(named.to_owned());
        }
        let folder = file.parent().unwrap_or(FilePath::new(""));
        let recorded = folder.join(&self.world);
        let beside = self.world.file_name().map(|name| folder.join(name));
        let mut places = vec![recorded];
        places.extend(beside.filter(|beside| *beside != places[0]));
        if let Some(place) = places.iter().find(|place| place.is_file()) {
            return Ok(place.clone());
        }
        let names: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        bail!(
            "{}: there is no world file at {}; name it with --world PATH, or copy the regression file beside it",
            file.display(),
            names.join(" or ")
        );
    }

    /// Applies the recorded settings of the exploration to a world file's settings. The share of branches with checks
    /// changes only if the world file does not set it. The strategy changes only if the regression file records one.
    pub fn apply(&self, explore: &mut ExploreConfig) {
        explore.checks = explore.checks.or(self.checks);
        explore.strategy = self.strategy.unwrap_or(explore.strategy);
    }

    /// Returns the fault plan for a world with these names. Errors name `file`, the regression file.
    ///
    /// # Errors
    /// Returns an error if the plan is invalid for this world.
    pub fn plan(&self, names: &Names, file: &FilePath) -> anyhow::Result<Plan> {
        let lines: String = self.plan.iter().map(|line| format!("{line}\n")).collect();
        Plan::parse(&lines, names).with_context(|| format!("{}: plan", file.display()))
    }

    /// Returns the route that replays the finding. In a changed world, the root moment can be at another vtime. All
    /// forks, the faults and the end then move with it.
    #[must_use]
    pub fn route(&self, setting: &Setting, plan: Plan) -> Route {
        let at_ns = setting.root_ns.saturating_add(self.for_ns);
        let end = BranchEnd { at_ns, open: false, checked: self.checked };
        Route { path: from_root(&self.path, setting.root_ns), plan: Some(plan), end: Some(end) }
    }

    /// Returns the finding that a replay should show: any violation of the property.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        Wanted { property: self.property.clone(), signature: None }
    }
}

/// Returns the path with all forks moved by the same time, so that the first one is at `root_ns`.
fn from_root(path: &Path, root_ns: u64) -> Path {
    let first_ns = path.forks().first().map_or(root_ns, |fork| fork.vtime_ns);
    let moved = path.forks().iter().try_fold(Path::default(), |moved, fork| {
        let vtime_ns = root_ns.saturating_add(fork.vtime_ns - first_ns);
        moved.child(Fork { vtime_ns, ..*fork })
    });
    // If a fork would pass the maximum vtime, all forks stay where they are.
    moved.unwrap_or_else(|_| path.clone())
}

/// Returns the path of `file` relative to `folder`.
fn from_folder(file: &FilePath, folder: &FilePath) -> anyhow::Result<PathBuf> {
    let absolute = |path: &FilePath| fs::canonicalize(path).with_context(|| path.display().to_string());
    let (file, folder) = (absolute(file)?, absolute(folder)?);
    let common = file.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(common).map(|_| Component::ParentDir);
    Ok(up.chain(file.components().skip(common)).collect())
}

/// Returns the files of a world relative to `folder`, joined to a list if there are several.
fn all_from_folder(world: &everett_world_file::World, folder: &FilePath) -> anyhow::Result<PathBuf> {
    let files = world.files().map(|file| from_folder(file, folder)).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(everett_world_file::listed(files.iter().map(PathBuf::as_path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::identity::Identity;
    use everett_input::causes::with_causes;
    use everett_world_file::{self as world_file, World};

    #[test]
    fn forks_follow_the_root_moment() {
        let path = |text: &str| text.parse::<Path>().unwrap();
        assert_eq!(from_root(&path("1000.1/3000.2"), 5000), path("5000.1/7000.2"));
        assert_eq!(from_root(&path("1000.1/3000.2"), 1000), path("1000.1/3000.2"));
        assert_eq!(from_root(&Path::default(), 7), Path::default());
    }

    /// Returns a temporary folder, and two folders in it: one for worlds and one for runs.
    fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let (worlds, runs) = (place.path().join("worlds"), place.path().join("ci/runs"));
        fs::create_dir_all(&worlds).unwrap();
        fs::create_dir_all(&runs).unwrap();
        (place, worlds, runs)
    }

    #[test]
    fn paths_are_relative_to_the_folder() {
        let (_place, worlds, runs) = folders();
        let file = worlds.join("w.toml");
        fs::write(&file, "").unwrap();
        assert_eq!(from_folder(&file, &runs).unwrap(), FilePath::new("../../worlds/w.toml"));
        assert_eq!(from_folder(&file, &worlds).unwrap(), FilePath::new("w.toml"));
        assert!(from_folder(&worlds.join("none"), &runs).is_err());
    }

    #[test]
    fn invalid_files_are_refused_with_their_name() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("r.json");
        let read = |text: &str| {
            fs::write(&file, text).unwrap();
            with_causes(Regression::read(&file).unwrap_err().as_ref())
        };
        assert!(read("{}").contains("r.json"), "it names the file");
        assert!(read("{\"schema_version\":1,\"wrold\":\"\"}").contains("wrold"));
        let whole = a_regression();
        whole.write(&file).unwrap();
        assert_eq!(Regression::read(&file).unwrap(), whole);
        Regression { timeline: "e1:0:0/5.1".to_owned(), ..whole.clone() }.write(&file).unwrap();
        let older = with_causes(Regression::read(&file).unwrap_err().as_ref());
        assert!(
            older.contains("r.json was made by machine version everett-1") && older.lines().count() == 1,
            "{older}"
        );
        Regression { schema_version: 2, ..whole.clone() }.write(&file).unwrap();
        assert!(with_causes(Regression::read(&file).unwrap_err().as_ref()).contains("version 2"));
        // A file of an older version lacks the field `minimal` and counts as minimal.
        let mut value = serde_json::to_value(&whole).unwrap();
        value.as_object_mut().unwrap().remove("minimal");
        fs::write(&file, value.to_string()).unwrap();
        assert_eq!(Regression::read(&file).unwrap(), Regression { minimal: true, ..whole });
    }

    /// Settings from the command line of an exploration are part of the timeline's name, so the file must record them.
    #[test]
    fn a_file_records_the_settings_of_its_exploration() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("r.json");
        let load = || world_file::parse("[[node]]\nname = \"a\"\n", FilePath::new("w.toml")).unwrap();
        let name = |world: &World| Identity::of_exploration(world, &["i".to_owned()]).path(Seed::new(1));
        let mut explored = load();
        explored.explore.strategy = StrategyKind::Pct;
        explored.explore.checks = Some(500_000);
        let regression =
            Regression { checks: Some(500_000), strategy: Some(StrategyKind::Pct), ..a_regression() };
        regression.write(&file).unwrap();
        let mut replayed = load();
        assert_ne!(name(&replayed), name(&explored));
        Regression::read(&file).unwrap().apply(&mut replayed.explore);
        assert_eq!(name(&replayed), name(&explored));
        // A file of an older version lacks these settings and leaves the world's settings unchanged.
        let mut world = explored.clone();
        a_regression().apply(&mut world.explore);
        assert_eq!(name(&world), name(&explored));
        assert!(!serde_json::to_string(&a_regression()).unwrap().contains("strategy"));
        let other = serde_json::to_string(&regression).unwrap().replace("\"pct\"", "\"luck\"");
        fs::write(&file, other).unwrap();
        let error = with_causes(Regression::read(&file).unwrap_err().as_ref());
        assert!(error.contains("r.json: ") && error.contains("luck"), "{error}");
    }

    /// A regression file finds its world at the recorded path, in its own folder after a copy, or at a named path.
    #[test]
    fn a_copied_file_finds_its_world() {
        let (place, worlds, runs) = folders();
        let world = worlds.join("w.toml");
        fs::write(&world, "").unwrap();
        let regression = Regression { world: from_folder(&world, &runs).unwrap(), ..a_regression() };
        let from = |folder: &FilePath, named: Option<&FilePath>| {
            regression.world_file(&folder.join("r.json"), named).map(|file| fs::canonicalize(file).unwrap())
        };
        let there = fs::canonicalize(&world).unwrap();
        assert_eq!(from(&runs, None).unwrap(), there);
        assert_eq!(from(&worlds, None).unwrap(), there, "beside the copied file");
        assert_eq!(from(place.path(), Some(&world)).unwrap(), there, "named");
        let error = from(place.path(), None).unwrap_err().to_string();
        assert!(
            error.contains("r.json: there is no world file at ") && error.contains("--world PATH"),
            "{error}"
        );
        // The path `r.json` names no folder, so Everett looks in the working directory, which has no `w.toml`.
        let bare = Regression { world: "w.toml".into(), ..a_regression() };
        assert!(bare.world_file(FilePath::new("r.json"), None).is_err());
    }

    fn a_regression() -> Regression {
        Regression {
            schema_version: 1,
            world: "w.toml".into(),
            timeline: "e3:0:0/".to_owned(),
            trail: String::new(),
            seed: Seed::default(),
            path: Path::default(),
            for_ns: 1,
            checked: true,
            checks: None,
            strategy: None,
            plan: Vec::new(),
            minimal: false,
            property: "p".to_owned(),
            text: "t".to_owned(),
        }
    }
}

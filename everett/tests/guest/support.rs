//! The test world, its image (from the user's cache, or built there), and functions that run its timelines.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, OnceLock};

use everett_explorer::plan::Plan;
use everett_host::interrupt::Interrupt;
use everett_remote_client::Online;
use everett_session::images::{self, WorldImage};
use everett_session::machines::EngineOptions;
use everett_session::output::progress::Quiet;
use everett_session::run::booted::{self, Booted, Wanted};
use everett_session::run::drive::{Ended, Watch, drive, drive_until_done};
use everett_session::run::launch::Launcher;
use everett_session::run::restarts::Nodes;
use everett_session::run::verify::Job;
use everett_session::world::event::{Event, What};
use everett_session::world::identity::Identity;
use everett_session::world::moments::MomentFolder;
use everett_session::world::timeline::restart_point::RestartPoint;
use everett_session::world::timeline::{Faults, Timeline};
use everett_streams::Seed;
use everett_vmm::Trail;
use everett_vmm::machine::{Stop, Until};
use everett_world_file as world_file;
use tempfile::TempDir;

/// A millisecond of vtime, in nanoseconds.
pub(crate) const MS: u64 = 1_000_000;

/// Returns the path of the world file of these tests.
pub(crate) fn world_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guest/world/world.toml")
}

/// Returns the image of the test world. The first call builds it.
pub(crate) fn image() -> &'static WorldImage {
    static IMAGE: OnceLock<WorldImage> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let world = world_file::load(&world_file()).expect("the test world");
        images::get(&Quiet, &world, &Online, &Interrupt::default()).expect("the image of the test world")
    })
}

/// Returns the booted test world. The first call boots it. The folder with its moments lives until the tests end.
pub(crate) fn booted() -> &'static Booted {
    static BOOTED: OnceLock<(Booted, TempDir)> = OnceLock::new();
    let (booted, _) = BOOTED.get_or_init(|| {
        let launcher = cold_launcher(EngineOptions::default());
        let folder = tempfile::tempdir().expect("a folder");
        let identity = Identity::new(&launcher.world, std::slice::from_ref(&image().digest));
        let moment_folder = MomentFolder::new(folder.path(), &identity, &identity);
        let booted = booted::get(&Quiet, &launcher, &moment_folder, Wanted::Both, &Interrupt::default())
            .expect("it boots");
        (booted, folder)
    });
    booted
}

/// Returns a launcher of the test world that starts timelines at *ready* (all services are up).
pub(crate) fn launcher(options: EngineOptions) -> Launcher {
    Launcher { from: Some(Arc::clone(&booted().ready)), ..cold_launcher(options) }
}

/// Returns a launcher of the test world that starts timelines at power-on.
pub(crate) fn cold_launcher(options: EngineOptions) -> Launcher {
    let world = world_file::load(&world_file()).expect("the test world");
    Launcher::new(world, image().files.clone(), options)
}

/// Returns a launcher of another world on the test world's image. It starts timelines at power-on.
pub(crate) fn launcher_of(world: &str) -> Launcher {
    let world = world_file::parse(world, Path::new("test.toml")).expect("a world");
    Launcher { world, ..cold_launcher(EngineOptions::default()) }
}

/// Boots `launcher`'s world. Returns a launcher that starts timelines at *ready*, and the restart points of the nodes,
/// i.e. the moments from which they restart after a power loss.
pub(crate) fn ready(launcher: Launcher) -> (Launcher, Arc<[RestartPoint]>) {
    let folder = tempfile::tempdir().expect("a folder");
    let identity = Identity::new(&launcher.world, std::slice::from_ref(&image().digest));
    let moment_folder = MomentFolder::new(folder.path(), &identity, &identity);
    let booted = booted::get(&Quiet, &launcher, &moment_folder, Wanted::Both, &Interrupt::default());
    let booted = booted.expect("it boots");
    (Launcher { from: Some(booted.ready), ..launcher }, booted.restart.expect("restart points"))
}

/// Returns the launcher with a fault plan. `points` are the nodes' restart points.
pub(crate) fn under(launcher: &Launcher, points: &Arc<[RestartPoint]>, plan: &str) -> Launcher {
    let plan = Plan::parse(plan, &launcher.world.names()).expect("a plan");
    let nodes = Nodes::new(Launcher { from: None, ..launcher.clone() }, Arc::clone(points));
    Launcher { faults: Some(Faults::new(plan, Arc::new(nodes))), ..launcher.clone() }
}

/// Watcher that keeps all events.
#[derive(Default)]
struct Keeper(Vec<Event>);

impl Watch for Keeper {
    fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        self.0.push(event.clone());
        Ok(())
    }
}

/// Runs a timeline until `duration_ns` of vtime after *ready*. Returns its trail and events.
pub(crate) fn run_to_end(timeline: &mut Timeline, duration_ns: u64) -> (Trail, Vec<Event>) {
    let mut keeper = Keeper::default();
    assert_eq!(drive(timeline, duration_ns, &mut keeper).unwrap(), Ended::Whole);
    (timeline.trail().clone(), keeper.0)
}

/// Runs a timeline to its end, which comes when its workload is done. Returns its trail and events.
pub(crate) fn run_until_done(timeline: &mut Timeline) -> (Trail, Vec<Event>) {
    let mut keeper = Keeper::default();
    assert_eq!(drive_until_done(timeline, &mut keeper).unwrap(), Ended::Whole);
    (timeline.trail().clone(), keeper.0)
}

/// Returns a job that runs the test world `runs` times under a seed.
pub(crate) fn job(options: EngineOptions, seed: u64, duration_ns: u64, runs: u32) -> Job {
    let jobs = NonZero::new(2).expect("not zero");
    Job { launcher: launcher(options), seed: Seed::new(seed), duration_ns, runs, jobs }
}

/// Runs a shell script on the machine. Returns the reason for the stop, and the events.
pub(crate) fn run_script(timeline: &mut Timeline, script: &str, limit_ns: u64) -> (Stop, Vec<Event>) {
    timeline
        .command_when_ready(everett_protocol::Exec::new(["sh", "-c", script].map(str::to_owned).to_vec()));
    let stop = timeline.run(&Until::vtime(limit_ns));
    (stop, timeline.take_events())
}

/// Returns the lines that a unit (service, driver, check or test command) printed.
pub(crate) fn lines<'e>(events: &'e [Event], unit_wanted: &str) -> Vec<&'e str> {
    let text = |event: &'e Event| match &event.what {
        What::Line { unit, text, .. } if unit == unit_wanted => Some(text.as_str()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// Returns the texts of the findings among events.
pub(crate) fn findings(events: &[Event]) -> Vec<&str> {
    let text = |event: &'_ Event| matches!(&event.what, What::Finding { .. });
    let found = events.iter().filter(|event| text(event));
    found
        .filter_map(|e| if let What::Finding { text, .. } = &e.what { Some(text.as_str()) } else { None })
        .collect()
}

/// Runs the program with `cache` as its cache.
pub(crate) fn everett_in(cache: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_everett");
    Command::new(program).args(arguments).env("EVERETT_CACHE", cache).output().expect("the program starts")
}

/// Runs the program with the user's cache.
pub(crate) fn everett(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_everett")).args(arguments).output().expect("the program starts")
}

/// Returns a program's status and output, for failure messages.
pub(crate) fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{:?}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
}

/// Explores a world under seed 1. Asserts the exit status, and returns the run directory, in `folder`.
#[cfg(feature = "inside")]
pub(crate) fn explored(world: &Path, folder: &Path, branches: u32, status: i32) -> String {
    let run = folder.join("run").display().to_string();
    let (world, branches) = (world.display().to_string(), branches.to_string());
    let options = ["--seed", "1", "--branches", &branches, "--plain", "-o", &run];
    let explored = everett(&[&["explore", &world], &options[..]].concat());
    assert_eq!(explored.status.code(), Some(status), "{}", shown(&explored));
    run
}

/// Returns the lines of a command with `--json`, which has found nothing wrong.
#[cfg(feature = "inside")]
pub(crate) fn json_lines(output: &Output) -> Vec<serde_json::Value> {
    assert!(output.status.success(), "{}", shown(output));
    let text = std::str::from_utf8(&output.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Returns the folder with Python packages, each with its version. They are installed from PyPI, unless an earlier test
/// run has done so.
#[cfg(feature = "inside")]
pub(crate) fn python_packages(packages: &[&str]) -> std::path::PathBuf {
    let tests = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = tests.join(packages.join("+"));
    if folder.is_dir() {
        return folder;
    }
    // Installs into a temporary folder and renames it, so that a killed test leaves nothing incomplete.
    let new = tempfile::tempdir_in(tests).expect("a folder");
    let target = new.path().join("packages");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]).arg(&target).args(packages);
    let output = pip.output().expect("pip starts");
    assert!(output.status.success(), "{}", shown(&output));
    std::fs::rename(target, &folder).expect("a new name");
    folder
}

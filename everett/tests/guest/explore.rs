//! Explorations: the same tree for any number of workers, exact replays, correct findings, and misbehaving guests.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use everett_explorer::run::{EndReason, Merged, Reading};
use everett_explorer::search::{ForkPoint, Path as Forks, Tree};
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::causes::with_causes;
use everett_session::explore::expedition::{self, ExplorationOutcome, ExplorationProgress, Limits, Onlooker};
use everett_session::explore::path_runner::{Aim, Failed, Marks, PathRunner, Route};
use everett_session::explore::replay::{Recorded, replay};
use everett_session::explore::setting::Setting;
use everett_session::explore::shrink::{Limits as ShrinkLimits, ShrinkEnd, Shrunk, TooEarly, Wanted, shrink};
use everett_session::explore::{marks, regression::Regression};
use everett_session::machines::EngineOptions;
use everett_session::output::progress::Quiet;
use everett_session::run::booted::{self, Wanted as Parts};
use everett_session::run::launch::Launcher;
use everett_session::world::identity::Identity;
use everett_session::world::moments::MomentFolder;
use everett_streams::Seed;
use everett_vmm::leak::Leak;

use crate::support::{everett_in, image, launcher_of, shown};

/// World with a Redis that loses its data in a power loss, and a client that notices.
pub(crate) const WORLD: &str = r#"
[[node]]
name = "db"
memory = "96M"
[[node.service]]
name = "redis"
argv = ["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""]
ready = { tcp = 6379 }
[[node]]
name = "client"
memory = "96M"
[[workload.driver]]
name = "adds"
node = "client"
argv = ["python3", "-c", '''
import json, os, socket, time
def tell(**line): os.write(3, (json.dumps(line) + "\n").encode())
process = 0
for n in range(10**9):
    tell(type="invoke", process=process, f="add", value=n)
    try:
        with socket.create_connection(("db", 6379), timeout=0.1) as db:
            db.settimeout(0.1)
            db.sendall(b"SADD s %d\r\n" % n)
            assert db.recv(100) == b":1\r\n"
        tell(type="ok", process=process, f="add", value=n)
    except (OSError, AssertionError):
        tell(type="info", process=process, f="add", value=n)
        process += 1
    time.sleep(0.01)
''']
[[workload.check]]
name = "read"
node = "client"
argv = ["python3", "-c", '''
import json, os, socket, time
def tell(**line): os.write(3, (json.dumps(line) + "\n").encode())
tell(type="invoke", process="check", f="read")
while True:
    try:
        with socket.create_connection(("db", 6379), timeout=1) as db:
            db.sendall(b"SMEMBERS s\r\nPING\r\n")
            text = b""
            while not text.endswith(b"+PONG\r\n"): text += db.recv(65536)
        break
    except OSError: time.sleep(0.05)
members = [int(word) for word in text.decode().split("\r\n") if word.isdigit()]
tell(type="ok", process="check", f="read", value=members)
print(len(members), "members")
''']
[workload.history]
model = "set"
[faults]
only = ["power_loss", "pause"]
[faults.power_loss]
every = "1s"
for = ["20ms", "100ms"]
nodes = ["db"]
[faults.pause]
every = "1s"
for = ["10ms", "200ms"]
[explore]
segment = "200ms"
horizon = "1s"
in_flight = 4
checks = 200000
"#;

pub(crate) fn setting(world: &str, options: EngineOptions) -> Setting {
    setting_of(launcher_of(world), options)
}

/// Boots a world and returns the setting of an exploration. `launcher` starts the world's timelines. It must start
/// them at power-on.
pub(crate) fn setting_of(mut launcher: Launcher, options: EngineOptions) -> Setting {
    let folder = tempfile::tempdir().expect("a folder");
    let digest = &image().digest;
    let identity = Identity::new(&launcher.world, std::slice::from_ref(digest));
    let moment_folder = MomentFolder::new(folder.path(), &identity, &identity);
    let booted = booted::get(&Quiet, &launcher, &moment_folder, Parts::Both, &Interrupt::default());
    let booted = booted.expect("it boots");
    let points = booted.restart.clone().expect("restart points");
    launcher.options = options;
    Setting::new(launcher, &booted, points, digest, Seed::new(3)).expect("a setting")
}

/// Explores 12 branches and returns the path of the deepest branch.
#[cfg(feature = "inside")]
pub(crate) fn deepest(setting: &Setting) -> Forks {
    let outcome = explore(setting, 12, 2, 1 << 30, false);
    let depth = |n: &u64| outcome.tree.branch(*n).map(|branch| branch.depth);
    let deepest = (0..12).max_by_key(depth).expect("there are branches");
    outcome.tree.path(ForkPoint::After(deepest)).expect("a path")
}

pub(crate) fn explore(
    setting: &Setting,
    branches: u64,
    workers: usize,
    memory_bytes: u64,
    slow: bool,
) -> ExplorationOutcome {
    let limits = Limits { branches, host_ns: None, until_found: false, workers, memory_bytes };
    let before = |choice: u64| {
        if slow && choice % 3 == 1 {
            Stopwatch::start().wait_for_ns(700_000_000, || false);
        }
    };
    expedition::explore(setting, None, &limits, &Interrupt::default(), &before, &mut ()).expect("it explores")
}

fn digests(outcome: &ExplorationOutcome) -> (String, Tree, Vec<(u32, u64, String)>) {
    let findings = outcome.merged.findings().iter();
    let findings = findings.map(|found| (found.id, found.first, found.hit.text.clone())).collect();
    (outcome.merged.digest().to_hex().to_string(), outcome.tree.clone(), findings)
}

/// Explores 44 branches, first with one worker and then with two. 44 is eleven times `in_flight`, the maximum number of
/// branches that were chosen and whose results are not yet merged. The second exploration delays every third branch and
/// keeps almost no moments.
#[test]
fn the_tree_is_the_same_for_any_number_of_workers() {
    let setting = setting(WORLD, EngineOptions::default());
    let one = explore(&setting, 44, 1, 1 << 30, false);
    let two = explore(&setting, 44, 2, 1 << 20, true);
    assert_eq!(digests(&one), digests(&two));
    let kept = |outcome: &ExplorationOutcome| outcome.progress.moments.expect("moments");
    assert_eq!(kept(&one).evicted, 0);
    assert!(kept(&two).evicted > 0, "{:?}", kept(&two));
    let shorter = explore(&setting, 17, 2, 1 << 30, false);
    assert_eq!(
        shorter.merged.digest_at(17),
        one.merged.digest_at(17),
        "a shorter exploration must be a prefix of a longer one"
    );
    assert!(one.tree.branches().iter().any(|branch| branch.depth > 2), "no branch has a depth above 2");

    assert!(
        one.merged.messages_most() > 100,
        "the longest timeline has only {} messages",
        one.merged.messages_most()
    );

    findings_are_right(&one.merged);
    let finding = one.merged.findings().iter().find(|finding| finding.hit.property == "lost write");
    let finding = finding.expect("a power loss loses acknowledged writes");

    // Replaying the path alone reproduces the finding, and shrinking finds fewer faults.
    let mut runner = PathRunner::new(&setting).unwrap();
    let branches = runner.journey(&Route::along(finding.path.clone()), &mut ()).unwrap();
    let last = branches.last().expect("a branch");
    let wanted = Wanted::of(&finding.hit);
    assert!(wanted.in_branch(last).is_some());
    let interrupt = Interrupt::default();
    let limits = ShrinkLimits { workers: 2, host_ns: None, interrupt: &interrupt };
    let shrunk = shrink(&setting, &finding.path, &wanted, &limits, &mut |_| {}).expect("it shrinks");
    assert_eq!(shrunk.why, ShrinkEnd::Minimal);
    let plan = shrunk.route.plan.clone().expect("a plan").write();
    assert_eq!(plan.lines().count(), 1, "one power loss must suffice: {plan}");
    assert!(plan.contains("power_loss"), "{plan}");
    let again = runner.journey(&shrunk.route, &mut ()).unwrap();
    assert_eq!(marks::digest(&again.last().expect("a branch").marks), shrunk.trail);
    drop(runner);
    interrupted_shrinking_keeps_the_best_plan(&setting, &finding.path, &wanted, &shrunk);
    a_panic_of_a_worker_ends_it(&setting);
    regressions_are_files(setting, &shrunk);
}

/// Checks that interrupted shrinking returns a plan that shows the finding. Shrinking without time for even one run
/// must return an error.
fn interrupted_shrinking_keeps_the_best_plan(
    setting: &Setting,
    path: &Forks,
    wanted: &Wanted,
    whole: &Shrunk,
) {
    let interrupt = Interrupt::default();
    let limits = ShrinkLimits { workers: 1, host_ns: None, interrupt: &interrupt };
    let cut = shrink(setting, path, wanted, &limits, &mut |progress| {
        if progress.better > 0 {
            interrupt.raise();
        }
    });
    let cut = cut.expect("a plan that shows the finding");
    assert_eq!((cut.why, cut.faults_before), (ShrinkEnd::Interrupted, whole.faults_before));
    assert!(
        cut.runs < whole.runs,
        "shrinking took {} runs when interrupted, and {} otherwise",
        cut.runs,
        whole.runs
    );
    assert_eq!(cut.found.hit.property, whole.found.hit.property);
    let branches = PathRunner::new(setting).unwrap().journey(&cut.route, &mut ()).unwrap();
    let last = branches.last().expect("a branch");
    assert!(
        wanted.in_branch(last).is_some() && marks::digest(&last.marks) == cut.trail,
        "the plan does not show the finding again"
    );
    let over = ShrinkLimits { workers: 1, host_ns: Some(0), interrupt: &Interrupt::default() };
    let error = shrink(setting, path, wanted, &over, &mut |_| {}).expect_err("no run has shown the finding");
    assert_eq!(error.downcast_ref(), Some(&TooEarly::Budget));
}

fn findings_are_right(merged: &Merged) {
    for finding in merged.findings() {
        let hit = &finding.hit;
        let right = ["lost write", "linearizability"].contains(&&*hit.property);
        assert!(right, "{}: {}", hit.property, hit.text);
        assert!(hit.evidence.faults.iter().any(|fault| fault.contains("power_loss")), "{:?}", hit.evidence);
        assert!(!hit.evidence.lines.is_empty() && !hit.evidence.packets.is_empty());
    }
}

/// Host time after which the test ends the exploration, in seconds. A correct exploration ends after a few branches.
/// An exploration that waited for the worker that panicked would never end.
const HANGS_AFTER_S: f64 = 600.0;

/// Checks that a panic in one of two workers ends the exploration with an error. The exploration must not wait for
/// that worker's branch.
fn a_panic_of_a_worker_ends_it(setting: &Setting) {
    const PANIC: &str = "a test wants a worker to panic";
    struct Impatient(Interrupt, Stopwatch);
    impl Onlooker for Impatient {
        fn at(&mut self, _: &ExplorationProgress) {
            if self.1.seconds() > HANGS_AFTER_S {
                self.0.raise();
            }
        }
    }
    let interrupt = Interrupt::default();
    let mut onlooker = Impatient(interrupt.clone(), Stopwatch::start());
    let limits =
        Limits { branches: 99, host_ns: None, until_found: false, workers: 2, memory_bytes: 1 << 30 };
    let before = |choice: u64| assert!(choice != 1, "{PANIC}");
    let outcome = expedition::explore(setting, None, &limits, &interrupt, &before, &mut onlooker);
    assert_eq!(outcome.unwrap_err().to_string(), format!("a worker has panicked: {PANIC}"));
    assert!(!interrupt.wanted(), "the exploration did not end by itself");
}

fn regressions_are_files(mut setting: Setting, shrunk: &Shrunk) {
    let folder = tempfile::tempdir().unwrap();
    // A regression file refers to a world file, so the test writes one.
    let world = folder.path().join("w.toml");
    fs::write(&world, WORLD).unwrap();
    setting.launcher.world.file = world;
    let file = folder.path().join("regression.json");
    let regression = Regression::of(&setting, shrunk, folder.path()).unwrap();
    regression.write(&file).unwrap();
    let read = Regression::read(&file).unwrap();
    assert_eq!(read, regression);
    let route = read.route(&setting, read.plan(&setting.abstractions.names, &file).unwrap());
    let Route { path, plan, end } = &shrunk.route;
    assert_eq!((&route.path, &route.plan, &route.end), (path, plan, end));
    assert_eq!(read.world_file(&file, None).unwrap(), folder.path().join("w.toml"));
    assert_eq!(read.strategy, Some(setting.launcher.world.explore.strategy));
}

/// A branch that continues from a moment is equal to the bit to the same branch of a run that never stopped. If the
/// test makes host time leak into the machines, the branches change.
#[test]
fn a_path_gives_one_timeline_whatever_was_run_before() {
    let setting = setting(WORLD, EngineOptions::default());
    let outcome = explore(&setting, 18, 2, 1 << 30, false);
    let deep: Vec<_> =
        (0..18).filter(|&n| outcome.tree.branch(n).is_some_and(|branch| branch.depth > 1)).collect();
    assert!(deep.len() > 5, "{deep:?}");
    let mut runner = PathRunner::new(&setting).unwrap();
    let path = |choice| outcome.tree.path(ForkPoint::After(choice)).unwrap();
    let legs = |runner: &mut PathRunner<'_>, choice| -> Vec<Marks> {
        let branches = runner.journey(&Route::along(path(choice)), &mut ()).unwrap();
        branches.into_iter().map(|branch| branch.marks).collect()
    };
    let there: Vec<_> = deep.iter().map(|&choice| legs(&mut runner, choice)).collect();
    let fresh: Vec<_> =
        deep.iter().map(|&choice| legs(&mut PathRunner::new(&setting).unwrap(), choice)).collect();
    assert_eq!(there, fresh);
    // Every instant of a timeline can be reached alone: the end of the segment, and those of the checks.
    let (mut checked, mut seeker) = (0, PathRunner::new(&setting).unwrap());
    for &choice in deep.iter().rev().take(6) {
        let branches = runner.journey(&Route::along(path(choice)), &mut ()).unwrap();
        let last = branches.last().unwrap();
        for (vtime_ns, digest) in last.marks.iter().filter(|(vtime_ns, _)| *vtime_ns >= last.end_ns) {
            seeker.seek(&path(choice), *vtime_ns, &mut ()).unwrap();
            assert_eq!(seeker.timeline().digest(), *digest, "branch {choice} at {vtime_ns} ns");
        }
        checked += usize::from(last.checked);
    }
    assert!(checked > 0, "no branch was checked");
    // Replays the last three paths from stored moments. Two path runners take turns, one branch each.
    let mut runners = [runner, PathRunner::new(&setting).unwrap()];
    for (&choice, legs) in deep.iter().zip(&there).rev().take(3) {
        let (path, mut here) = (path(choice), Forks::default());
        let (mut at_moment, mut memory) = (None, setting.inherited_at_boot().unwrap());
        for (fork, marks) in path.forks().iter().zip(legs) {
            here = here.child(*fork).unwrap();
            let aim = if here == path { Aim::Whole } else { Aim::Moment };
            runners.reverse();
            let branch = runners[0].branch(at_moment.as_ref(), &here, &memory, aim, &mut ()).unwrap();
            assert_eq!(&branch.marks, marks, "{here}");
            (at_moment, memory) = (branch.at_moment, branch.memory);
        }
    }
    let mut ends: Vec<String> = fresh.iter().filter_map(|legs| legs.last().map(marks::digest)).collect();
    ends.sort();
    ends.dedup();
    assert_eq!(ends.len(), deep.len(), "each path must give a different timeline");
    // With a planted leak of host time, the exploration records other results of branches.
    let records = outcome.merged.digest();
    let leaky = EngineOptions {
        leak: Leak { mmio: Some(everett_host::time::noise), ..Leak::default() },
        ..EngineOptions::default()
    };
    let leaky = self::setting(WORLD, leaky);
    let other = explore(&leaky, 18, 2, 1 << 30, false);
    assert_ne!(other.merged.digest(), records, "a leak of host time must change the records");
}

/// Temporary folder for run directories, with a world file and its lock file. Commands in it use the user's cache.
pub(crate) struct TestFolder {
    folder: tempfile::TempDir,
}

impl TestFolder {
    pub(crate) fn new(world: &str) -> TestFolder {
        let folder = tempfile::tempdir().unwrap();
        let packages = r#"packages = ["openssl", "python3", "redis-server", "redis-tools", "sqlite3"]"#;
        let world = world.replacen("name = \"db\"", &format!("name = \"db\"\n{packages}"), 1);
        let world = format!("[image]\nsuite = \"bookworm\"\n{world}");
        fs::write(folder.path().join("world.toml"), world).unwrap();
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guest/world/world.lock");
        fs::copy(lock, folder.path().join("world.lock")).unwrap();
        TestFolder { folder }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn cache(&self) -> std::path::PathBuf {
        everett_guest_image::Cache::of_user().unwrap().folder().to_owned()
    }

    pub(crate) fn everett(&self, arguments: &[&str]) -> std::process::Output {
        everett_in(&self.cache(), arguments)
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
        command.args(arguments).env("EVERETT_CACHE", self.cache());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
    }

    fn digest(&self, run: &str) -> String {
        let shown_digest = self.everett(&["show", run, "--digest"]);
        assert!(shown_digest.status.success(), "{}", shown(&shown_digest));
        String::from_utf8(shown_digest.stdout).unwrap()
    }
}

/// Interval at which the test counts the branches that a process has recorded, in nanoseconds of host time.
const LOOK_EVERY_NS: u64 = 20_000_000;
/// Number of further branches that a process may record before the test kills it.
const HELD_LATER: u64 = 5;

/// Kills `everett explore` at several points, then runs other commands on the run directory.
#[test]
fn a_killed_exploration_continues_as_if_it_had_not_been_killed() {
    image();
    let place = TestFolder::new(WORLD);
    let (world, whole, killed) = (place.path("world.toml"), place.path("whole"), place.path("killed"));
    let explore = |run: &str, jobs: &'static str| {
        ["explore", &world, "--seed", "3", "--branches", "40", "--jobs", jobs, "-o", run].map(str::to_owned)
    };
    fn refs(arguments: &[String]) -> Vec<&str> {
        arguments.iter().map(String::as_str).collect()
    }
    let output = place.everett(&refs(&explore(&whole, "1")));
    assert_eq!(output.status.code(), Some(1), "nothing is found: {}", shown(&output));
    // Each kill comes when the run directory has more records (results of branches) than at the previous kill.
    let arguments = explore(&killed, "2");
    let records = || Reading::open(Path::new(&killed)).map_or(0, |reading| reading.len());
    for wanted in [3, 14, 25] {
        // The test kills the process at this record or later. However slow the test is, the process does not begin the
        // branch `held` (`--hold-from`), so it cannot end before the kill.
        let held = wanted + HELD_LATER;
        let hold = ["--hold-from".to_owned(), held.to_string()];
        let mut child = place.spawn(&refs(&[&arguments[..], &hold].concat()));
        while records() < wanted && child.try_wait().unwrap().is_none() {
            Stopwatch::start().wait_for_ns(LOOK_EVERY_NS, || false);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            (wanted..=held).contains(&records()),
            "it was not killed while it explored: {} records",
            records()
        );
    }
    let output = place.everett(&refs(&arguments));
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    assert_eq!(place.digest(&killed), place.digest(&whole));

    // Runs other commands on the run directory.
    let found = place.everett(&["--json", "findings", &whole]);
    assert!(String::from_utf8_lossy(&found.stdout).contains("lost write"), "{}", shown(&found));
    let report = place.everett(&["report", &whole]);
    assert!(String::from_utf8_lossy(&report.stdout).contains("lost write"), "{}", shown(&report));
    let told = place.everett(&["show", &whole, "1"]);
    let folder = format!("{whole}/findings/1");
    assert!(String::from_utf8_lossy(&told.stdout).contains(&folder), "{}", shown(&told));
    assert!(Path::new(&folder).join("log.txt").exists());
    let shrunk = place.everett(&["shrink", &whole, "1"]);
    assert_eq!(shrunk.status.code(), Some(1), "{}", shown(&shrunk));
    let replay = place.everett(&["replay", &format!("{whole}/regression-1.json"), "-q"]);
    assert_eq!(replay.status.code(), Some(1), "the finding is gone: {}", shown(&replay));
    a_shrinking_that_is_interrupted_leaves_a_file(&place, &whole);
    a_recorded_finding_has_its_whole_timeline_in_the_page(&place, &whole);
    let replay = place.everett(&["replay", &killed, "1", "-q"]);
    assert_eq!(replay.status.code(), Some(1), "the finding does not show again: {}", shown(&replay));
    for branch in ["b7", "b20", "b39"] {
        let replay = place.everett(&["replay", &killed, branch, "-q"]);
        assert!(matches!(replay.status.code(), Some(0 | 1)), "{}", shown(&replay));
        assert!(
            String::from_utf8_lossy(&replay.stdout).contains("on its recorded trail"),
            "{}",
            shown(&replay)
        );
    }
    let other = place.everett(&["explore", &world, "--seed", "4", "--branches", "9", "-o", &whole]);
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&other.stderr).contains("seed differs"), "{}", shown(&other));

    // The error about a damaged record in the journal names the record's number.
    let journal = format!("{killed}/branches.bin");
    let mut bytes = fs::read(&journal).unwrap();
    bytes[100] ^= 1;
    fs::write(&journal, bytes).unwrap();
    let damaged = place.everett(&["findings", &killed]);
    assert_eq!(damaged.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&damaged.stderr).contains("branches.bin: record 1 is damaged"),
        "{}",
        shown(&damaged)
    );
}

/// `explore` records whole timelines of findings, so the report's page (HTML) has all messages with their sending
/// times. Without the recording, the page has only the evidence. `replay --record` makes the same recording.
fn a_recorded_finding_has_its_whole_timeline_in_the_page(place: &TestFolder, run: &str) {
    let data = || {
        let page = fs::read_to_string(format!("{run}/report.html")).unwrap();
        let (_, json) = page.split_once("id=\"data\">").unwrap();
        serde_json::from_str::<serde_json::Value>(json.split_once("</script>").unwrap().0).unwrap()
    };
    let (at_end, file) = (data(), format!("{run}/timeline-1.jsonl"));
    let recorded = at_end["findings"][0]["scene"].clone();
    assert_eq!(recorded["is_recorded"], true);
    let recordings = &at_end["summary"]["recordings"];
    assert_eq!((&recordings["recorded"][0], &recordings["left_out"]), (&1.into(), &serde_json::json!([])));
    let kept_file = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let report = place.everett(&["report", run, "--html"]);
    assert_eq!(report.status.code(), Some(1), "{}", shown(&report));
    let kept = data()["findings"][0]["scene"].clone();
    assert!(kept["messages"].as_array().unwrap().iter().all(|message| message["sent_ns"].is_null()));
    assert_eq!(kept["is_recorded"], false);
    let replay = place.everett(&["replay", run, "1", "-q", "--record"]);
    assert_eq!(replay.status.code(), Some(1), "{}", shown(&replay));
    assert_eq!(fs::read_to_string(&file).unwrap(), kept_file);
    let messages = recorded["messages"].as_array().unwrap();
    assert!(messages.len() > kept["messages"].as_array().unwrap().len());
    assert!(messages.iter().all(
        |message| message["sent_ns"].as_u64() <= message["at_ns"].as_u64() && message["sent_ns"].is_u64()
    ));
    assert_eq!(recorded["faults"], kept["faults"], "the recording has other faults");
    assert!(recorded["operations"].as_array().unwrap().iter().any(|operation| operation["marked"] == true));
    // All branches are explored already. With a budget that is used up at once, the timeline is not recorded, and the
    // page says so.
    fs::remove_file(&file).unwrap();
    let world = place.path("world.toml");
    let short = ["explore", &world, "--seed", "3", "--branches", "40", "-o", run, "--record", "1ns"];
    let short = place.everett(&short);
    assert!(shown(&short).contains("are not recorded: everett replay"), "{}", shown(&short));
    let recordings = data()["summary"]["recordings"].clone();
    assert_eq!(
        (&recordings["left_out"][0], recordings["recorded"].as_array().unwrap().contains(&1.into())),
        (&1.into(), false)
    );
    assert!(!Path::new(&file).exists());
    // With a planted leak of host time, the replay differs from the exploration.
    let again = ["explore", &world, "--seed", "3", "--branches", "40", "-o", run, "--plant", "host-time"];
    let inexact = place.everett(&again);
    assert_eq!(inexact.status.code(), Some(2), "{}", shown(&inexact));
    assert!(
        String::from_utf8_lossy(&inexact.stderr).contains("the exploration was not exact"),
        "{}",
        shown(&inexact)
    );
    assert!(
        !Path::new(&file).exists()
            && !data()["summary"]["recordings"]["different"].as_array().unwrap().is_empty()
    );
}

/// Checks that `everett shrink` writes the best plan so far if it is interrupted, and that `everett replay` shows the
/// finding with that plan.
fn a_shrinking_that_is_interrupted_leaves_a_file(place: &TestFolder, run: &str) {
    let file = place.path("cut.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
    command
        .args(["--json", "shrink", run, "1", "--jobs", "1", "-o", &file])
        .env("EVERETT_CACHE", place.cache());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("\"kind\":\"better\"")), "the finding is not shown again");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    let last = lines.last().expect("a summary");
    assert!(last.contains("\"kind\":\"shrunk\"") && last.contains("\"why\":\"interrupted\""), "{last}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(fs::read_to_string(&file).unwrap().contains("\"minimal\": false"));
    // The world file lies beside the regression file. If only the regression file is copied elsewhere, the error
    // names the places that were searched.
    fs::create_dir(place.path("elsewhere")).unwrap();
    let copy = place.path("elsewhere/cut.json");
    fs::copy(&file, &copy).unwrap();
    let lost = place.everett(&["replay", &copy, "-q"]);
    assert_eq!(lost.status.code(), Some(2), "{}", shown(&lost));
    assert!(
        shown(&lost).contains("there is no world file at") && shown(&lost).contains("--world"),
        "{}",
        shown(&lost)
    );
    for arguments in [
        ["replay", &file, "-q", "--engine", "auto"],
        ["replay", &copy, "-q", "--world", &place.path("world.toml")],
    ] {
        let again = place.everett(&arguments);
        assert_eq!(again.status.code(), Some(1), "the finding is gone: {}", shown(&again));
        assert!(shown(&again).contains("equal to the recorded one"), "{}", shown(&again));
    }
}

/// If the world file lacks `in_flight` and `checks` (the share of branches after which the checks run), Everett chooses
/// both values from the requested number of branches and records them. A resumed run keeps the recorded values.
#[test]
fn a_short_exploration_has_few_branches_in_flight() {
    image();
    let place = TestFolder::new(&WORLD.replace("in_flight = 4\n", "").replace("checks = 200000\n", ""));
    let (world, run) = (place.path("world.toml"), place.path("run"));
    let first =
        place.everett(&["explore", &world, "--seed", "3", "--branches", "300", "--until-found", "-o", &run]);
    assert_eq!(first.status.code(), Some(1), "nothing is found: {}", shown(&first));
    let header = fs::read_to_string(format!("{run}/run.json")).unwrap();
    assert!(header.contains("\"in_flight\": 16") && header.contains("\"checks\": 250000"), "{header}");
    let digest = place.digest(&run);
    // A new exploration of one branch would choose other values, but a resumed one keeps the recorded values.
    let second =
        place.everett(&["explore", &world, "--seed", "3", "--branches", "1", "--jobs", "1", "-o", &run]);
    assert!(matches!(second.status.code(), Some(0 | 1)), "{}", shown(&second));
    assert!(shown(&second).contains("this run began with 16 branches in flight"), "{}", shown(&second));
    let text = shown(&first);
    assert!(text.contains("branches had checks") && text.contains("the deepest timeline has"), "{text}");
    assert_eq!(fs::read_to_string(format!("{run}/run.json")).unwrap(), header);
    let third = place.everett(&[
        "--json",
        "explore",
        &world,
        "--seed",
        "3",
        "--branches",
        "300",
        "--until-found",
        "-o",
        &run,
    ]);
    assert!(shown(&third).contains("\"worth\":{\"branches\":"), "{}", shown(&third));
    assert_eq!(place.digest(&run), digest);
    // The regression file records the share of branches with checks. Without this setting, `replay` would give the
    // timeline another name, because the name contains a digest of the world's settings.
    let shrunk = place.everett(&["shrink", &run, "1"]);
    assert_eq!(shrunk.status.code(), Some(1), "{}", shown(&shrunk));
    let replay = place.everett(&["replay", &format!("{run}/regression-1.json"), "-q"]);
    assert!(shown(&replay).contains("equal to the recorded one"), "{}", shown(&replay));
    let report = place.everett(&["report", &run, "--all"]);
    assert!(shown(&report).contains("branches had checks"), "{}", shown(&report));
}

/// A misbehaving workload is a finding. Output that is merely too long is cut at a bound.
#[test]
fn workloads_that_go_wrong_are_findings() {
    let world = |driver: &str| {
        format!(
            "[[node]]\nname = \"a\"\nmemory = \"96M\"\n[[workload.driver]]\nname = \"bad\"\nargv = [\"sh\", \"-c\", '''{driver}''']\n\
             [workload.history]\nmodel = \"register\"\n[explore]\nsegment = \"100ms\"\nhorizon = \"200ms\"\nin_flight = 2\n\
             log = \"4K\"\n[faults]\nonly = [\"reseed\"]\n"
        )
    };
    let found = |driver: &str| {
        let setting = setting(&world(driver), EngineOptions::default());
        let outcome = explore(&setting, 4, 2, 1 << 26, false);
        let findings = outcome
            .merged
            .findings()
            .iter()
            .map(|found| (found.hit.property.clone(), found.hit.text.clone()));
        (findings.collect::<Vec<_>>(), outcome.merged.totals().log_bytes, outcome.merged.totals().logs_cut)
    };
    let (malformed, ..) = found("echo '{\"type\":\"invoke\"' >&3; echo nonsense >&3; sleep 9");
    assert!(
        malformed.iter().any(|(property, text)| property == "bad history" && text.contains("JSON")),
        "{malformed:?}"
    );
    let (flood, ..) = found("exec yes >&3");
    assert!(flood.iter().any(|(_, text)| text.contains("16 MiB of history")), "{flood:?}");
    let (chatty, bytes, cut) = found("exec yes a rather long line of log that says nothing");
    assert!(chatty.is_empty(), "{chatty:?}");
    assert!(bytes > 100_000 && cut > 0, "{bytes} bytes of log were kept, {cut} logs were cut");
    let (failing, ..) = found("exit 3");
    assert_eq!(failing[0].0, "driver exit", "{failing:?}");
}

/// The test reads the output of `everett explore` up to the first finding, and then closes the pipe. Each of ten
/// properties is violated on some branches, so the exploration finds more, and fails to write the next finding.
#[test]
fn a_closed_output_ends_the_exploration_and_the_run_is_whole() {
    image();
    let folder = tempfile::tempdir().unwrap();
    let (world, run) = (folder.path().join("w.toml"), folder.path().join("run"));
    let mut text = "[[node]]\nname = \"a\"\nmemory = \"96M\"\n[[workload.driver]]\nname = \"dice\"\n\
                    argv = [\"sh\", \"-c\", \"echo eyes$(od -An -N1 -tu1 /dev/urandom | tail -c 2)\"]\n\
                    [explore]\nsegment = \"100ms\"\nhorizon = \"200ms\"\nin_flight = 2\n[faults]\nonly = [\"reseed\"]\n"
        .to_owned();
    for digit in 0..10 {
        text += &format!("[[property]]\nname = \"p{digit}\"\nnever = \"eyes{digit}\"\n");
    }
    std::fs::write(&world, text).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_everett"))
        .args(["explore", "--branches", "100000", "--json", "-o"])
        .args([&run, &world])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.unwrap().contains("\"kind\":\"found\"")));
    drop(lines);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    let reading = Reading::open(&run).unwrap();
    assert_eq!(reading.end().map(|end| end.why), Some(EndReason::Stopped));
}

/// Worlds that never become ready, so no exploration can begin.
#[test]
fn worlds_that_never_begin_are_errors() {
    image();
    let world = |service: &str| {
        format!(
            "[[node]]\nname = \"db\"\nmemory = \"96M\"\n[[node.service]]\nname = \"s\"\nargv = [\"sh\", \"-c\", '''{service}''']\n\
             ready = {{ tcp = 81 }}\nready_timeout = \"500ms\"\n"
        )
    };
    for (service, why) in [
        ("sleep 99", "not ready"),
        ("exit 7", "exit status 7"),
        ("echo c > /proc/sysrq-trigger", "machine stopped"),
    ] {
        let place = TestFolder::new(&world(service));
        let output = place.everett(&[
            "explore",
            &place.path("world.toml"),
            "--branches",
            "4",
            "-o",
            &place.path("run"),
        ]);
        assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("does not get ready") && error.contains(why), "{why}: {}", shown(&output));
        assert!(!Path::new(&place.path("run")).exists(), "a run directory is left behind");
    }
}

/// Declarations of a world file are checked before a machine boots.
#[test]
fn declarations_are_checked_first() {
    let place = TestFolder::new("[[node]]\nname = \"db\"\n[[property]]\nname = \"p\"\nnever = \"(\"\n");
    let output = place.everett(&["explore", &place.path("world.toml"), "-o", &place.path("run")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("world.toml"), "{}", shown(&output));
}

/// If the engine (the part of Everett that executes a machine) fails, replaying and shrinking end with an error. Such a
/// run must not count as a run without the finding.
#[test]
fn a_dead_engine_is_no_result() {
    let setting = setting(WORLD, EngineOptions { panics: true, ..EngineOptions::default() });
    let path: Forks = format!("{}.1", setting.root_ns).parse().unwrap();
    let told = "engine failure, a defect of Everett: panicked with \"a planted panic of CPUID\"";
    let check = |error: anyhow::Error| {
        let failed: &Failed =
            error.downcast_ref().unwrap_or_else(|| panic!("{}", with_causes(error.as_ref())));
        assert!(["db", "client"].contains(&&*failed.node), "{failed}");
        assert_eq!(error.to_string(), format!("{}: {told}", failed.node));
    };
    let mut runner = PathRunner::new(&setting).unwrap();
    check(runner.journey(&Route::along(path.clone()), &mut ()).unwrap_err());
    assert!(runner.failure().is_some());
    check(replay(&setting, &path, &Recorded::default(), &mut ()).unwrap_err());
    let wanted = Wanted { property: "lost write".to_owned(), signature: None };
    let limits = ShrinkLimits { workers: 2, host_ns: None, interrupt: &Interrupt::default() };
    check(shrink(&setting, &path, &wanted, &limits, &mut |_| {}).unwrap_err());
}

/// A panic in the engine ends the exploration with its message. The run directory keeps the earlier records, and the
/// exploration can resume as if nothing had happened.
#[test]
fn an_engine_that_panics_leaves_the_run_directory_as_it_was() {
    image();
    let place = TestFolder::new(WORLD);
    let (world, whole, failed) = (place.path("world.toml"), place.path("whole"), place.path("failed"));
    let explore = |run: &str, branches: &str, more: &[&str]| {
        let arguments = ["explore", &world, "--seed", "3", "--branches", branches, "--jobs", "2", "-o", run];
        place.everett(&[&arguments, more].concat())
    };
    let records = || fs::read(format!("{failed}/branches.bin")).unwrap();
    explore(&failed, "5", &[]);
    let before = records();
    assert_eq!(Reading::open(Path::new(&failed)).unwrap().len(), 5);

    let output = explore(&failed, "12", &["--plant", "panic"]);
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    let text = String::from_utf8_lossy(&output.stderr);
    let told = "engine failure, a defect of Everett: panicked with \"a planted panic of CPUID\"";
    assert!(text.lines().any(|line| line.starts_with("everett: e3:") && line.contains(told)), "{text}");
    assert!(records().starts_with(&before), "earlier records are lost");

    let ended = explore(&whole, "12", &[]).status.code();
    assert!(matches!(ended, Some(0 | 1)), "{ended:?}");
    assert_eq!(
        explore(&failed, "12", &[]).status.code(),
        ended,
        "the continued exploration ends differently"
    );
    assert!(records().starts_with(&before) && records().len() > before.len());
    assert_eq!(place.digest(&failed), place.digest(&whole));
}

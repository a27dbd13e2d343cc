//! Tests of stored moments: a timeline continues from a moment as if it had never stopped, and a damaged file is not
//! used.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use everett_host::interrupt::Interrupt;
use everett_session::machines::EngineOptions;
use everett_session::output::progress::Quiet;
use everett_session::run::booted::{self, Booted, Wanted};
use everett_session::run::launch::Launcher;
use everett_session::world::conversation::Phase;
use everett_session::world::event::Event;
use everett_session::world::identity::Identity;
use everett_session::world::moments::{MomentFolder, Stored};
use everett_session::world::timeline::Timeline;
use everett_snapshot::Pool;
use everett_streams::Seed;
use everett_vmm::Trail;
use everett_vmm::machine::Until;

use crate::support::{MS, everett_in, image, job, launcher, run_to_end, shown, world_file};

const DURATION_NS: u64 = 300 * MS;

fn whole(mut timeline: Timeline) -> (Trail, Vec<Event>) {
    run_to_end(&mut timeline, DURATION_NS)
}

#[test]
fn a_stored_boot_is_invisible() {
    let cold =
        whole(Launcher { from: None, ..launcher(EngineOptions::default()) }.start(Seed::new(3)).unwrap());
    let stored = whole(launcher(EngineOptions::default()).start(Seed::new(3)).unwrap());
    assert_eq!(cold, stored);
    // A timeline that continues from the restart point, the moment at which the root file system is mounted, is also
    // the same.
    let launcher = Launcher { from: None, ..launcher(EngineOptions::default()) };
    let mut timeline = launcher.boot().unwrap();
    timeline.run_to(Phase::Mounted, &mut |_, _| true).unwrap();
    let events = timeline.take_events();
    let mounted = Stored::of(&mut timeline, &Pool::default(), events, vec![Vec::new()]);
    let again = Launcher { from: Some(Arc::new(mounted)), ..launcher };
    assert_eq!(whole(again.start(Seed::new(3)).unwrap()), stored);
}

/// Returns the next pseudo-random number.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn moments_anywhere_change_nothing_and_can_be_continued() {
    let (expected, events) = whole(launcher(EngineOptions::default()).start(Seed::new(5)).unwrap());
    let pool = Pool::default();
    let mut timeline = launcher(EngineOptions::default()).start(Seed::new(5)).unwrap();
    timeline.end_after(DURATION_NS);
    let end_ns = expected.points().last().unwrap().0;

    // Takes moments under load: at multiples of 10 ms, and at random instructions in between.
    let (mut random, mut told, mut stored) = (1, Vec::new(), Vec::new());
    for step in 0.. {
        let (vtime, icount) = (timeline.vtime(), timeline.icount());
        if vtime >= end_ns {
            break;
        }
        let until = if step % 4 == 0 {
            Until::vtime((vtime / (10 * MS) + 1) * 10 * MS)
        } else {
            Until { vtime: end_ns, ..Until::icount(icount + draw(&mut random) % 400_000) }
        };
        timeline.run(&Until { vtime: until.vtime.min(end_ns), ..until });
        told.append(&mut timeline.take_events());
        stored.push(Stored::of(&mut timeline, &pool, told.clone(), vec![Vec::new()]));
    }
    assert!(stored.len() > 60, "the run stored only {} moments", stored.len());
    assert_eq!(timeline.trail(), &expected);
    assert_eq!(told, events);

    // Continues from randomly chosen moments. Every fourth round uses a new machine. The other rounds restore the
    // moment into the machine of the previous round, which still has that round's state.
    let options = EngineOptions::default();
    let mut worker = launcher(options).start(Seed::new(1)).unwrap();
    for round in 0..12 {
        let chosen = &stored[draw(&mut random) as usize % stored.len()];
        let from = Launcher { from: Some(Arc::new(chosen.clone())), ..launcher(options) };
        if round % 4 == 3 {
            worker = from.start(Seed::new(5)).unwrap();
        } else {
            assert!(from.start_again(&mut worker, Seed::new(5)).unwrap());
        }
        assert_eq!(worker.digest(), chosen.digest, "round {round}");
        let then = &chosen.moment.machines[0];
        assert_eq!(worker.machine(0).differing_page(then), None, "round {round}");
        let to_ns = end_ns - draw(&mut random) % (50 * MS);
        if worker.vtime() < to_ns {
            worker.run(&Until::vtime(to_ns));
        }
        let points = worker.trail().points();
        assert_eq!(points, &expected.points()[..points.len()], "round {round}");
    }
}

/// Decoded code survives a restore: the first millisecond afterwards decodes only a few blocks.
#[test]
fn the_millisecond_after_a_restore_is_not_spent_decoding() {
    let launcher = launcher(EngineOptions::default());
    let mut worker = launcher.start(Seed::new(1)).unwrap();
    let run = |worker: &mut Timeline, ns: u64| {
        let before = worker.machine_mut(0).engine_mut().soft_mut().unwrap().blocks_decoded();
        worker.run(&Until::vtime(worker.vtime() + ns));
        worker.machine_mut(0).engine_mut().soft_mut().unwrap().blocks_decoded() - before
    };
    let cold = run(&mut worker, MS);
    run(&mut worker, 100 * MS);
    assert!(launcher.start_again(&mut worker, Seed::new(1)).unwrap());
    let warm = run(&mut worker, MS);
    assert!(cold > 500, "a new machine decoded {cold} blocks in its first millisecond");
    // In the 100 ms before the restore, other code has taken some slots of the code cache, so a few blocks must be
    // decoded again.
    assert!(warm * 20 < cold, "decoded {warm} blocks after a restore, and {cold} in a new machine");
}

#[test]
fn runs_on_restored_machines_are_equal() {
    let report =
        job(EngineOptions::default(), 9, 200 * MS, 16).run(&Interrupt::default(), &|_, _| {}).unwrap();
    assert_eq!((report.mismatch, report.runs.len()), (None, 16));
    // Eight of the 16 runs have caches of the default size, and only these eight can reuse a machine. Each of the two
    // workers makes a new machine for the first of the eight runs that it executes. Six runs remain.
    assert_eq!(report.runs.iter().filter(|run| run.on_restored_machine).count(), 6);
}

/// Boots the test world and stores its moments in `folder`.
fn boot_in(folder: &Path) -> (MomentFolder, Booted) {
    let launcher = Launcher { from: None, ..launcher(EngineOptions::default()) };
    let digest = std::slice::from_ref(&image().digest);
    let world = Identity::new(&launcher.world, digest);
    let moment_folder = MomentFolder::new(folder, &world, &Identity::of_boot(&launcher.world, digest));
    let booted = booted::get(&Quiet, &launcher, &moment_folder, Wanted::Both, &Interrupt::default()).unwrap();
    (moment_folder, booted)
}

#[test]
fn a_damaged_boot_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (moment_folder, first) = boot_in(folder.path());
    let files = ["boot-ready.moment", "boot-restart.moment"].map(|file| moment_folder.folder().join(file));
    let sound: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    let pages_max = launcher(EngineOptions::default()).pages_max();
    let pool = Pool::default();
    let read = |name: &str| match name {
        "ready" => moment_folder.ready(1, &pool, pages_max).map(|stored| stored.digest == first.ready.digest),
        _ => moment_folder
            .restart(&first.ready, &pool, pages_max)
            .map(|points| points.len() == 1 && points[0].machine.icount() > 0),
    };
    assert!(read("ready").unwrap() && read("restart").unwrap());
    // Damages one file at a time: flips a bit at a random place, or truncates the file. Each damage alone is noticed.
    let mut state = 11;
    for ((file, content), name) in files.iter().zip(&sound).zip(["ready", "restart"]) {
        let mut damaged = content.clone();
        let at = draw(&mut state) as usize % damaged.len();
        damaged[at] ^= 1 << (draw(&mut state) % 8);
        for damaged in [&damaged[..], &content[..content.len() / 2]] {
            replace(file, damaged);
            assert!(read(name).is_err(), "{}", file.display());
        }
        replace(file, content);
        assert!(read(name).is_ok());
    }
    replace(&files[0], &sound[0][..sound[0].len() / 2]);
    replace(&files[1], &sound[1][1..]);
    let (_, again) = boot_in(folder.path());
    assert_eq!(again.ready.digest, first.ready.digest);
    for (file, content) in files.iter().zip(&sound) {
        assert!(fs::read(file).unwrap() == *content, "{} was not repaired", file.display());
    }
}

/// Replaces a file with a new one. Writing in place would change existing mappings of the file.
fn replace(file: &Path, content: &[u8]) {
    fs::remove_file(file).unwrap();
    fs::write(file, content).unwrap();
}

/// Temporary folder with a cache.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }
    fn everett(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = everett_in(&self.cache(), arguments);
        (output.status.code(), shown(&output))
    }
}

#[test]
fn moments_are_saved_listed_shown_restored_and_dropped() {
    let place = Place { folder: tempfile::tempdir().unwrap() };
    // Images come from the user's cache, moments do not.
    let world = world_file();
    let world = world.to_str().unwrap();
    link_images(&place.cache());
    let ok = |arguments: &[&str]| {
        let (status, text) = place.everett(arguments);
        assert_eq!(status, Some(0), "{arguments:?}: {text}");
        text
    };
    let refused = |arguments: &[&str], why: &str| {
        let (status, text) = place.everett(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {text}");
        assert!(text.contains(why), "{arguments:?}: {text}");
    };
    assert!(ok(&["moment", "list", world]).contains("no moment of this world"));
    ok(&["moment", "save", world, "--seed", "7", "--at", "50ms"]);
    ok(&["moment", "save", world, "--at", "80ms", "--from", "seed7-50ms", "--name", "later"]);
    let list = ok(&["moment", "list", world]);
    assert!(list.contains("seed7-50ms") && list.contains("later"), "{list}");
    ok(&["moment", "save", world, "--seed", "7", "--at", "0s", "--name", "begin"]);
    assert!(
        !ok(&["moment", "show", world, "begin"]).contains(" 0 events"),
        "the events before the moment are lost"
    );
    ok(&["moment", "drop", world, "begin"]);
    assert!(ok(&["moment", "show", world, "later"]).contains("80 ms after ready"));
    assert!(ok(&["moment", "restore", world, "later"]).contains("the world equals the saved one"));

    let trail = |text: &str| text.lines().find_map(|line| line.strip_prefix("trail ")).unwrap().to_owned();
    let run = |more: &[&str]| trail(&ok(&[&["run", world, "--seed", "7", "--for", "100ms"], more].concat()));
    let whole = run(&[]);
    assert_eq!((run(&["--from", "later"]), run(&["--cold"])), (whole.clone(), whole.clone()));
    // A run from a moment has the same trail as the whole run, even if less time remains than the latency of a frame.
    for at in ["99400us", "99950us", "99999us"] {
        ok(&["moment", "save", world, "--at", at, "--from", "later", "--name", at]);
        assert_eq!(run(&["--from", at]), whole, "from {at}");
        ok(&["moment", "drop", world, at]);
    }

    // A moment at which the machine has no power.
    let plan = place.folder.path().join("plan.jsonl");
    fs::write(&plan, r#"{"at": "20ms", "for": "50ms", "fault": "power_loss", "node": "a"}"#).unwrap();
    let plan = ["--faults", plan.to_str().unwrap()];
    ok(&[&["moment", "save", world, "--seed", "7", "--at", "40ms", "--name", "dark"], &plan[..]].concat());
    assert!(ok(&["moment", "restore", world, "dark"]).contains("the world equals the saved one"));
    let from_there = [&["--from", "dark"], &plan[..]].concat();
    assert_eq!(run(&from_there), run(&plan), "a power loss in progress must continue");
    refused(&["run", world, "--from", "dark", "--for", "20s"], "under another fault plan");
    ok(&["moment", "drop", world, "dark"]);

    refused(
        &["moment", "save", world, "--seed", "7", "--at", "50ms"],
        "there is already a moment \"seed7-50ms\"",
    );
    refused(
        &["moment", "save", world, "--at", "10ms", "--from", "later"],
        "lies later than 10 ms after ready",
    );
    refused(&["run", world, "--seed", "8", "--from", "later", "--for", "20s"], "under seed 7");
    refused(
        &["run", world, "--from", "later", "--for", "80ms"],
        "the moment in --from lies 80 ms after ready",
    );
    refused(&["run", world, "--from", "none", "--for", "20s"], "there is no moment \"none\"");
    refused(&["moment", "show", world, "../../x"], "a moment's name has");
    // A limit of 64 KiB on the size of files has the effect of a full disk.
    let full = format!(
        "trap '' XFSZ; ulimit -f 64; exec {} moment save {world} --seed 7 --at 90ms --name big",
        env!("CARGO_BIN_EXE_everett")
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &full])
        .env("EVERETT_CACHE", place.cache())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    assert!(shown(&output).contains("big.moment: File too large"), "{}", shown(&output));
    assert_eq!(ok(&["moment", "list", world]), list, "a saved moment is lost, or a partial one is left");

    // A bit flips in a saved moment.
    let saved = find(&place.cache(), "later.moment");
    let mut bytes = fs::read(&saved).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    replace(&saved, &bytes);
    refused(&["moment", "restore", world, "later"], "later.moment: damaged");
    refused(&["run", world, "--from", "later", "--for", "20s"], "later.moment: damaged");
    ok(&["moment", "drop", world, "later"]);
    refused(&["moment", "drop", world, "later"], "there is no moment");
}

/// Makes a cache without moments. Its other entries are links to the user's cache, so that tests need not build images.
fn link_images(cache: &Path) {
    fs::create_dir_all(cache).unwrap();
    let users = everett_guest_image::Cache::of_user().unwrap();
    for entry in fs::read_dir(users.folder()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "moments" {
            std::os::unix::fs::symlink(entry.path(), cache.join(entry.file_name())).unwrap();
        }
    }
}

fn find(folder: &Path, name: &str) -> PathBuf {
    let moments = fs::read_dir(folder.join("moments")).unwrap();
    let saved = moments.flat_map(|entry| fs::read_dir(entry.unwrap().path().join("saved")).unwrap());
    saved.map(|entry| entry.unwrap().path().join(name)).find(|path| path.is_file()).unwrap()
}

/// Processes that are killed while they store a moment leave no partial file behind.
///
/// The test does not depend on host time: each process is killed as soon as one of its files appears. A process that
/// ends before the kill does not count; six of at most forty must be killed.
#[test]
fn a_killed_process_leaves_no_half_written_store() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    image();
    link_images(&cache);
    let world = world_file();
    let world = world.to_str().unwrap();
    let listed = || everett_in(&cache, &["moment", "list", world, "--json"]);
    assert_eq!(listed().status.code(), Some(0));
    assert_eq!(
        everett_in(&cache, &["moment", "save", world, "--at", "1ms", "--name", "first"]).status.code(),
        Some(0)
    );
    let saved = find(&cache, "first.moment").parent().unwrap().to_owned();
    let files = || -> BTreeSet<PathBuf> {
        fs::read_dir(&saved).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let mut killed = 0;
    for kill in 0..40 {
        if killed == 6 {
            break;
        }
        let before = files();
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_everett"))
            .args(["moment", "save", world, "--at", "2ms", "--name", &format!("killed{kill}")])
            .env("EVERETT_CACHE", &cache)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Waits for the first file of the process: a temporary one or the final one.
        while files().is_subset(&before) && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        killed += usize::from(child.wait().unwrap().code().is_none());
        let output = listed();
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            let name = record["name"].as_str().unwrap();
            assert_eq!(everett_in(&cache, &["moment", "show", world, name]).status.code(), Some(0), "{name}");
        }
    }
    assert_eq!(killed, 6);
}

//! Guests that go wrong end in a clear finding or error, never in a panic of Everett.

use std::fs;
use std::path::{Path, PathBuf};

use everett_host::interrupt::Interrupt;
use everett_session::machines::EngineOptions;
use everett_session::output::progress::Quiet;
use everett_session::run::booted::{self, Attempt, Wanted};
use everett_session::world::conversation::Phase;
use everett_session::world::event::{Event, What};
use everett_session::world::identity::Identity;
use everett_session::world::moments::MomentFolder;
use everett_streams::Seed;
use everett_vmm::machine::{End, Stop};

use crate::support::{
    MS, everett, findings, image, launcher, launcher_of, ready, run_script, run_to_end, shown, under,
};

#[test]
fn a_kernel_panic_is_a_finding() {
    let mut timeline = launcher(EngineOptions::default()).start(Seed::new(1)).unwrap();
    let (stop, events) = run_script(&mut timeline, "echo c > /proc/sysrq-trigger", 20_000 * MS);
    assert_eq!(stop, Stop::End(End::Reset));
    let found = findings(&events);
    assert_eq!(
        found,
        ["the machine stopped: the guest reset itself: Kernel panic - not syncing: sysrq triggered crash"]
    );
}

#[test]
fn an_unrequested_power_off_is_a_finding() {
    let mut timeline = launcher(EngineOptions::default()).start(Seed::new(1)).unwrap();
    let (stop, events) = run_script(&mut timeline, "echo o > /proc/sysrq-trigger; sleep 5", 20_000 * MS);
    assert_eq!(stop, Stop::End(End::PowerOff));
    assert_eq!(findings(&events), ["the machine stopped: the guest powered off"]);
}

#[test]
fn a_truncated_initramfs_ends_in_a_panic_of_the_guest() {
    let files = &image().files;
    let place = tempfile::tempdir().unwrap();
    let cut = place.path().join("initramfs");
    let whole = fs::read(files.initramfs.as_ref().unwrap()).unwrap();
    fs::write(&cut, &whole[..whole.len() / 3]).unwrap();
    let boot = |initramfs: &str| {
        everett(&[
            "boot",
            "--kernel",
            files.kernel.to_str().unwrap(),
            "--initramfs",
            initramfs,
            "--for",
            "20s",
        ])
    };
    let output = boot(cut.to_str().unwrap());
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    assert!(shown(&output).contains("Kernel panic"), "{}", shown(&output));
    fs::write(&cut, b"").unwrap();
    let output = boot(cut.to_str().unwrap());
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    assert!(shown(&output).contains("the initramfs is empty"), "{}", shown(&output));
}

#[test]
fn a_world_that_does_not_get_ready_is_a_finding_and_shows_why() {
    let place = tempfile::tempdir().unwrap();
    let service =
        "name = \"sh\"\nargv = [\"sh\", \"-c\", \"echo out of order; exit 3\"]\nready = { tcp = 1 }\n";
    let world = world_with(place.path(), service);
    let output = everett(&["run", world.to_str().unwrap(), "--for", "1s"]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    let text = shown(&output);
    assert!(text.contains("| out of order"), "{text}");
    assert!(text.contains("service sh ended with exit status 3 before all services were ready"), "{text}");
}

/// Writes the test world with another service. Returns the path of the file.
fn world_with(place: &Path, service: &str) -> PathBuf {
    let text = fs::read_to_string(crate::support::world_file()).unwrap();
    let (head, _) = text.split_once("[[node.service]]").unwrap();
    for file in fs::read_dir(crate::support::world_file().parent().unwrap()).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), place.join(file.file_name())).unwrap();
    }
    let world = place.join("world.toml");
    fs::write(&world, format!("{head}[[node.service]]\n{service}")).unwrap();
    world
}

/// A service that always ends. Its last lines differ only in a number, the process ID.
const ALWAYS_ENDS: &str = "name = \"sh\"\nargv = [\"sh\", \"-c\", \"echo out of order $$; exit 3\"]\n\
                           ready = { tcp = 1 }\nrestart = \"always\"\n";

#[test]
fn a_service_that_always_ends_ends_the_boot_and_says_why() {
    let place = tempfile::tempdir().unwrap();
    let world = world_with(place.path(), ALWAYS_ENDS);
    let world = world.to_str().unwrap();
    let output = everett(&["run", world, "--for", "1s"]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.matches("| out of order").count(), 5, "{said}");
    let reason = "service sh has ended 5 times in a row with exit status 3 and the same lines, for ";
    assert!(said.contains(reason), "{said}");
    assert!(told.contains("service sh has ended 3 times in a row with exit status 3 and is restarted; its last line: out of order"), "{told}");

    // Commands that do not print what services say, such as `explore`, print the service's last lines beside the error.
    let run = place.path().join("run");
    let output = everett(&["explore", world, "--branches", "1", "-o", run.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("\n    sh: out of order ") && told.contains(reason), "{told}");
}

/// After a boot that failed, `everett run` does not boot again, but continues the timeline of this boot. The result
/// equals the result of a run from power-on.
#[test]
fn a_run_continues_the_boot_that_failed() {
    let world = format!("[[node]]\nname = \"a\"\nmemory = \"96M\"\n[[node.service]]\n{ALWAYS_ENDS}");
    let launcher = launcher_of(&world);
    let folder = tempfile::tempdir().unwrap();
    let identity = Identity::new(&launcher.world, std::slice::from_ref(&image().digest));
    let moments = MomentFolder::new(folder.path(), &identity, &identity);
    let attempt = booted::attempt(&Quiet, &launcher, &moments, Wanted::Ready, &Interrupt::default()).unwrap();
    let Attempt::Failed(failed) = attempt else { panic!("it is ready") };
    let (mut failed, mut cold) = (failed.into_timeline(Seed::new(7)), launcher.start(Seed::new(7)).unwrap());
    let (failed_run, cold_run) = (run_to_end(&mut failed, MS), run_to_end(&mut cold, MS));
    assert_eq!(failed_run.0, cold_run.0);
    assert!(failed_run.1 == cold_run.1, "the events differ");
    assert_eq!(failed.icount(), cold.icount());
    assert_eq!(findings(&run_to_end(&mut launcher.start(Seed::new(8)).unwrap(), MS).1).len(), 1);
}

#[test]
fn a_service_may_end_until_the_one_it_needs_is_up() {
    const WORLD: &str = r#"
[[node]]
name = "db"
memory = "96M"
[[node.service]]
name = "redis"
argv = ["sh", "-c", "sleep 8; exec redis-server --bind 0.0.0.0 --protected-mode no"]
ready = { tcp = 6379 }
[[node]]
name = "app"
memory = "96M"
[[node.service]]
name = "app"
argv = ["sh", "-c", "redis-cli -h db ping || exit 1; touch /run/up; exec sleep 9999"]
ready = { command = ["test", "-e", "/run/up"] }
restart = "always"
"#;
    let mut timeline = launcher_of(WORLD).start(Seed::new(1)).unwrap();
    let (_, events) = run_to_end(&mut timeline, MS);
    assert_eq!(findings(&events), Vec::<&str>::new());
    let ends = |event: &&Event| matches!(&event.what, What::Exit { unit, .. } if unit == "app");
    assert!(events.iter().filter(ends).count() > 20, "it ended often");
}

#[test]
fn an_interrupted_boot_says_where_it_was() {
    let world = format!("[[node]]\nname = \"a\"\nmemory = \"96M\"\n[[node.service]]\n{ALWAYS_ENDS}");
    let mut timeline = launcher_of(&world).boot().unwrap();
    let error = timeline.run_to(Phase::Ready, &mut |timeline, _| {
        let has_ended = |event: &Event| matches!(event.what, What::Exit { .. });
        !timeline.take_events().iter().any(has_ended)
    });
    let text = error.unwrap_err().to_string();
    assert!(text.starts_with("interrupted before the world was ready, at "), "{text}");
    let state = " s of vtime: node a: its service sh (tcp port 1) is not ready; sh has ended once, the last time with exit \
                 status 3";
    assert!(text.ends_with(state), "{text}");
}

#[test]
fn a_package_that_does_not_exist_is_an_error_of_one_line() {
    let place = tempfile::tempdir().unwrap();
    let world = place.path().join("world.toml");
    fs::write(&world, "[[node]]\nname = \"a\"\npackages = [\"no-such-package-anywhere\"]\n").unwrap();
    let output = everett(&["image", "build", world.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("world.toml: there is no package no-such-package-anywhere in bookworm"), "{text}");
    assert!(!place.path().join("world.lock").exists());
}

/// The finding about a service that is not ready again after a power loss names its readiness condition and the time
/// limit.
#[test]
fn a_node_that_does_not_come_back_says_what_it_waits_for() {
    const WORLD: &str = r#"
[[node]]
name = "db"
memory = "96M"
disk = { path = "/data", size = "48M", sector = "4K" }
[[node.service]]
name = "once"
argv = ["sh", "-c", "if [ -e /data/seen ]; then exec sleep 9999; fi; touch /data/seen; sync; exec redis-server --port 6379"]
ready = { tcp = 6379 }
ready_timeout = "500s"
"#;
    let (launcher, points) = ready(launcher_of(WORLD));
    let plan = r#"{"at": "500ms", "for": "50ms", "fault": "power_loss", "node": "db"}"#;
    let launcher = under(&launcher, &points, plan);
    let (_, events) = run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), 1_000 * MS);
    assert_eq!(
        findings(&events),
        ["node db is not back 120 s after the workload ended: its service once (tcp port 6379) is not ready"]
    );
}

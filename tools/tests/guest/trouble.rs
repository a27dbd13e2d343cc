//! Guests that go wrong end in a clear finding or error, never in a panic of Everett.

use std::fs;

use everett_session::machines::EngineOptions;
use everett_vmm::machine::{End, Stop};

use crate::support::{
    MS, everett, findings, image, launcher, launcher_of, ready, run_script, run_to_end, shown, under,
};

#[test]
fn a_kernel_panic_is_a_finding() {
    let mut timeline = launcher(EngineOptions::default()).start(1).unwrap();
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
    let mut timeline = launcher(EngineOptions::default()).start(1).unwrap();
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
    let world = place.path().join("world.toml");
    let text = fs::read_to_string(crate::support::world_file()).unwrap();
    let (head, _) = text.split_once("[[node.service]]").unwrap();
    for file in fs::read_dir(crate::support::world_file().parent().unwrap()).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), place.path().join(file.file_name())).unwrap();
    }
    let service = "[[node.service]]\nname = \"sh\"\nargv = [\"sh\", \"-c\", \"echo out of order; exit 3\"]\nready = { tcp = 1 }\n";
    fs::write(&world, head.to_owned() + service).unwrap();
    let output = everett(&["run", world.to_str().unwrap(), "--for", "1s"]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    let text = shown(&output);
    assert!(text.contains("| out of order"), "{text}");
    assert!(text.contains("service sh ended with exit status 3 before all services were ready"), "{text}");
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

/// The finding about a service that is not ready again after a loss of power names the service's readiness condition
/// and the time limit.
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
    let (_, events) = run_to_end(&mut launcher.start(1).unwrap(), 1_000 * MS);
    assert_eq!(
        findings(&events),
        ["node db is not back 120 s after the workload ended: its service once (tcp port 6379) is not ready"]
    );
}

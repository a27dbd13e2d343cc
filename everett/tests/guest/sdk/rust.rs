//! Tests of a program that uses the Rust SDK.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use everett_explorer::search::Fork;
use everett_report::exploration::assertions::{Verdict, asserted};
use everett_session::machines::EngineOptions;
use everett_session::run::launch::Launcher;
use everett_session::world::event::Event;
use everett_streams::Seed;
use everett_world_file::FileEntry;

use super::{Outcomes, outcomes, run, sdk_lines, verdict};
use crate::explore::{explore, setting_of};
use crate::support::{MS, findings, launcher_of, lines, ready, run_to_end};

const MANIFEST: &str = r#"
[package]
name = "app"
version = "0.0.0"
edition = "2021"
[workspace]
[dependencies]
antithesis_sdk = { version = "=0.2.8", features = ["full"] }
serde_json = "1"
"#;
const PROGRAM: &str = include_str!("app.rs");

/// World whose service is [`PROGRAM`]. The program is linked to the host's glibc, which must not be newer than the
/// guests' glibc.
const WORLD: &str = r#"
[sdk]
[[node]]
name = "a"
memory = "96M"
[[node.service]]
name = "app"
argv = ["/opt/app"]
[faults]
only = ["pause"]
[explore]
segment = "200ms"
horizon = "600ms"
in_flight = 4
"#;

/// Builds the program with the SDK's crate from crates.io. Returns the path of the executable.
fn built(is_static: bool) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk-rust");
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("Cargo.toml"), MANIFEST).unwrap();
    fs::write(folder.join("src/main.rs"), PROGRAM).unwrap();
    let target = folder.join(if is_static { "static" } else { "dynamic" });
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--quiet", "--release", "--target", "x86_64-unknown-linux-gnu"])
        .current_dir(&folder);
    let flags = if is_static { "-Ctarget-feature=+crt-static" } else { "" };
    run(cargo.env("CARGO_TARGET_DIR", &target).env("CARGO_ENCODED_RUSTFLAGS", flags).env_remove("RUSTFLAGS"));
    target.join("x86_64-unknown-linux-gnu/release/app")
}

/// Runs the program on this host in the SDK's local mode. Returns the outcomes of its assertions.
fn local(program: &Path) -> Outcomes {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("local.jsonl");
    run(Command::new(program).arg("--once").env("ANTITHESIS_SDK_LOCAL_OUTPUT", &output));
    outcomes(&fs::read_to_string(output).unwrap())
}

fn launcher(program: &Path) -> Launcher {
    let mut launcher = launcher_of(WORLD);
    launcher.world.nodes[0].files =
        vec![FileEntry::of_root("/opt/app".to_owned(), fs::read(program).unwrap().into())];
    launcher
}

#[test]
fn rust_prints_the_same_verdicts_here_and_in_its_local_mode() {
    let program = built(false);
    let local = local(&program);
    let setting = setting_of(launcher(&program), EngineOptions::default());
    let outcome = explore(&setting, 6, 2, 1 << 30, false);
    let here = asserted(outcome.merged.coverage());
    let there: Vec<(String, String, &str)> = local
        .iter()
        .map(|((kind, name), outcome)| (name.clone(), kind.clone(), verdict(kind, *outcome)))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let mut shown: Vec<(String, String, &str)> = here
        .iter()
        .map(|one| {
            let verdict = match one.verdict {
                Verdict::Failed => "failed",
                Verdict::Passed => "passed",
                Verdict::NeverReached => "never_reached",
            };
            (one.name.clone(), one.kind.name().to_owned(), verdict)
        })
        .collect();
    shown.sort();
    assert_eq!(shown, there);
    // The assertions were evaluated before the root moment, so each branch has the same outcomes.
    assert!(here.iter().all(|one| [0, 6].contains(&one.held) && [0, 6].contains(&one.failed)), "{here:?}");
    let failed: BTreeSet<&str> =
        here.iter().filter(|one| one.verdict == Verdict::Failed).map(|one| one.name.as_str()).collect();
    let found: BTreeSet<&str> =
        outcome.merged.findings().iter().map(|found| found.hit.property.as_str()).collect();
    assert_eq!(found, failed);
}

/// Returns the random numbers that the program printed.
fn numbers(events: &[Event]) -> Vec<&str> {
    lines(events, "app").into_iter().filter(|line| line.starts_with("random")).collect()
}

#[test]
fn random_numbers_follow_the_timeline() {
    let (launcher, _) = ready(launcher(&built(false)));
    let run = |seed, fork: Option<Fork>| {
        let mut timeline = launcher.resume(launcher.from.as_ref().unwrap()).unwrap();
        if let Some(fork) = fork {
            timeline.begin_as(fork).unwrap();
        }
        timeline.begin(Seed::new(seed)).unwrap();
        let (trail, events) = run_to_end(&mut timeline, 500 * MS);
        assert_eq!(findings(&events), [] as [&str; 0]);
        (trail, numbers(&events).join("\n"))
    };
    let root_ns = launcher.from.as_ref().unwrap().session.ready_ns().unwrap();
    let fork = |child| Some(Fork { vtime_ns: root_ns, child });
    let first = run(1, None);
    assert_eq!(first, run(1, None));
    let others = [run(2, None), run(1, fork(1)), run(1, fork(2))].map(|(_, numbers)| numbers);
    let all: BTreeSet<&String> = others.iter().chain([&first.1]).collect();
    assert_eq!(all.len(), 4, "{all:?}");
    assert_eq!(run(1, fork(2)).1, others[2]);
}

/// A statically linked program cannot load the SDK's shared library `libvoidstar.so`. Instead it writes to the file of
/// the SDK's local mode, and Everett reads this file too.
#[test]
fn a_static_program_is_heard_through_its_file() {
    let program = built(true);
    let launcher = launcher(&program);
    let mut timeline = launcher.start(Seed::new(1)).unwrap();
    let (_, events) = run_to_end(&mut timeline, 200 * MS);
    let text = sdk_lines(&events).join("\n");
    assert_eq!(outcomes(&text), local(&program));
    assert!(text.contains("\"prepared\""), "{text}");
}

//! Tests of the program without its optional features.
//!
//! `cargo test --release -p everett --no-default-features --test small` runs them.
#![cfg(not(any(
    feature = "containers",
    feature = "history",
    feature = "inside",
    feature = "online",
    feature = "view"
)))]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use everett_explorer::run::{EndReason, Header, Journal, Reading};
use everett_finding_file::{Content, MemberSource};
use everett_session::finding_file::About;
use everett_session::world::identity::MACHINE_VERSION;
use everett_world_file::seal::Seal;
use tempfile::TempDir;

fn everett(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
    command.current_dir(folder).env("EVERETT_CACHE", folder.join("cache")).env("PATH", "");
    command.args(arguments).output().unwrap()
}

/// Runs a command that must fail with one line on standard error. Returns that line.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = everett(folder, arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
    error.trim_end().to_owned()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Writes the run directory of an exploration that ended before its first branch.
fn explored(run: &Path) {
    let header = Header {
        machine_version: MACHINE_VERSION.to_owned(),
        world_file: "world.toml".to_owned(),
        nodes: vec!["a".to_owned()],
        ..Header::default()
    };
    let journal = Journal::create(run, &header).unwrap();
    let merged = Reading::open(run).unwrap().merged(u64::MAX).unwrap();
    journal.finish(&merged.end(EndReason::Branches, 1)).unwrap();
}

#[test]
fn commands_on_the_history_say_what_they_need() {
    let folder = folder();
    explored(&folder.path().join("run"));
    for arguments in [
        &["runs"][..],
        &["runs", "world.toml"],
        &["runs", "add", "run"],
        &["runs", "prune", "--gone"],
        &["report", "run", "--against", "history"],
    ] {
        let expected = "everett: this build of everett has no history of runs; build it with the feature history \
                        (cargo build --release)";
        assert_eq!(refused(folder.path(), arguments), expected, "{arguments:?}");
    }
    assert!(!folder.path().join("cache/history.sqlite").exists());
}

#[test]
fn finding_files_need_no_history() {
    let folder = folder();
    let run = folder.path().join("run");
    explored(&run);
    let member = |name: &str, content: Vec<u8>| MemberSource {
        name: name.to_owned(),
        content: Content::Bytes(content),
    };
    let members = [
        member("run/run.json", fs::read(run.join("run.json")).unwrap()),
        member("run/branches.bin", fs::read(run.join("branches.bin")).unwrap()),
        member("world/w/world.toml", b"[[node]]\nname = \"a\"\n".to_vec()),
    ];
    let about = About {
        everett: String::new(),
        machine_version: MACHINE_VERSION.to_owned(),
        finding: 1,
        property: "lost write".to_owned(),
        text: String::new(),
        timeline: String::new(),
        trail: String::new(),
        faults: Vec::new(),
        world: "world/w/world.toml".to_owned(),
        folders: Vec::new(),
        seal: Seal::default(),
    };
    let mut bytes = Vec::new();
    everett_finding_file::write(about, &members, &mut bytes, &mut |_, _| {}).unwrap();
    fs::write(folder.path().join("f.finding"), bytes).unwrap();
    let output = everett(folder.path(), &["runs", "import", "f.finding", "-o", "imported"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let expected =
        "this build has no history of runs; to record the run, use a full build: everett runs add imported";
    assert_eq!(text.lines().filter(|line| *line == expected).count(), 1, "{text}");
    assert!(folder.path().join("imported/run.json").is_file());
    assert!(!folder.path().join("cache/history.sqlite").exists());
}

#[test]
fn programs_for_guests_need_the_feature_containers() {
    let folder = folder();
    for (text, what) in [
        ("[[node]]\nname = \"a\"\nimage = \"docker://quay.io/a/b:1\"\n", "node \"a\" has a container image"),
        ("[[node]]\nname = \"a\"\n[sdk]\n", "it has the section [sdk]"),
    ] {
        fs::write(folder.path().join("world.toml"), text).unwrap();
        let expected = format!(
            "everett: world.toml: {what}, and this build of everett has no programs for its guests; build it with the \
             feature containers (cargo build --release)"
        );
        assert_eq!(refused(folder.path(), &["image", "build", "world.toml"]), expected);
    }
}

#[test]
fn images_of_registries_need_the_feature_online() {
    let folder = folder();
    let error = refused(folder.path(), &["init", "docker://quay.io/a/b:1", "-o", "other.toml"]);
    assert!(error.ends_with("build it with the feature online (cargo build --release)"), "{error}");
}

#[test]
fn kernels_of_hosts_without_apt_need_the_feature_online() {
    // PATH is empty, so the program does not find apt-get.
    let folder = folder();
    fs::create_dir_all(folder.path().join("root/bin")).unwrap();
    fs::write(folder.path().join("world.toml"), "[image]\nrootfs = \"root\"\n[[node]]\nname = \"a\"\n")
        .unwrap();
    let error = refused(folder.path(), &["image", "build", "world.toml"]);
    assert!(error.starts_with("everett: world.toml: cannot fetch http"), "{error}");
    assert!(
        error.ends_with(
            "/InRelease: this build of everett cannot reach registries and mirrors; build it with the feature online \
             (cargo build --release)"
        ),
        "{error}"
    );
}

#[test]
fn doctor_names_what_the_build_lacks() {
    let output = everett(folder().path(), &["doctor"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    let expected = "note build it lacks containers (images, compose files, the SDK), online (registries, mirrors), history (everett \
                    runs), inside (everett ps, everett stack), view (live view of explore); cargo build --release builds all";
    assert_eq!(words.join(" "), expected);
    let output = everett(folder().path(), &["--json", "doctor"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let first = text.lines().next().unwrap();
    assert_eq!(
        first,
        r#"{"kind":"build","containers":false,"history":false,"inside":false,"online":false,"view":false}"#
    );
}

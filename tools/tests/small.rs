//! The program without its optional features: what it does instead. `cargo test -p everett --no-default-features --test small`
//! runs these tests.
#![cfg(not(any(feature = "containers", feature = "history", feature = "online", feature = "view")))]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

fn everett(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
    command.current_dir(folder).env("EVERETT_CACHE", folder.join("cache")).env("PATH", "");
    command.args(arguments).output().unwrap()
}

/// Returns the one line of an error.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = everett(folder, arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
    error.trim_end().to_owned()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn commands_on_the_history_say_what_they_need() {
    let folder = folder();
    for arguments in
        [&["runs"][..], &["runs", "world.toml"], &["runs", "add", "run"], &["runs", "prune", "--gone"]]
    {
        let expected = "everett: this build of everett has no history of runs; build it with the feature history \
                        (cargo build --release)";
        assert_eq!(refused(folder.path(), arguments), expected, "{arguments:?}");
    }
    assert!(!folder.path().join("cache/history.sqlite").exists());
}

#[test]
fn finding_files_need_no_history() {
    let folder = folder();
    for arguments in [&["runs", "import", "none.finding"][..], &["replay", "none.finding"]] {
        let error = refused(folder.path(), arguments);
        assert!(error.contains("none.finding") && !error.contains("this build"), "{error}");
    }
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
    // The program finds no apt-get, because PATH is empty.
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
    let output = everett(folder().path(), &["--json", "doctor"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let first = text.lines().next().unwrap();
    assert_eq!(first, r#"{"kind":"build","containers":false,"history":false,"online":false,"view":false}"#);
}

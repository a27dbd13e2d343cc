//! Boots drafts, i.e. the first world files that `everett init` writes: the servers start, pass their checks, and there
//! is no finding.
//!
//! Only a few packages are tested here. `benches/drafts.sh` boots the drafts of all known packages, and
//! `containers::drafts` boots drafts of an image and of a compose file.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::shown;

/// Runs the program in a folder, with the user's cache.
fn everett_at(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
    command.args(arguments).current_dir(folder).output().expect("the program starts")
}

/// Runs a command that must succeed. Returns its output.
fn fine(folder: &Path, arguments: &[&str]) -> String {
    let output = everett_at(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", shown(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Writes a draft and runs its world. Returns the draft and the output of the run.
fn booted(folder: &Path, arguments: &[&str]) -> (String, String) {
    booted_with(folder, arguments, "")
}

/// Writes a draft, appends lines to it, and runs its world. Returns the draft and the output of the run.
pub(crate) fn booted_with(folder: &Path, arguments: &[&str], added: &str) -> (String, String) {
    fine(folder, &[&["init"], arguments].concat());
    let file = folder.join("world.toml");
    let draft = fs::read_to_string(&file).expect("the draft");
    fs::write(&file, format!("{draft}{added}")).expect("the world file");
    let said = fine(folder, &["run", "--for", "1s"]);
    assert!(said.contains("services are ready") && said.contains("nothing found"), "{said}");
    (draft, said)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn a_known_package_on_several_machines_answers() {
    let place = folder();
    let (_, said) = booted(place.path(), &["redis-server", "--nodes", "2"]);
    for check in ["redis-server-1-answers", "redis-server-2-answers"] {
        assert!(said.contains(check), "{said}");
    }
}

/// The package's systemd unit says how the server starts, and a trial boot shows its port.
#[test]
fn an_unknown_package_is_started_as_its_unit_says() {
    let place = folder();
    let (text, said) = booted(place.path(), &["beanstalkd"]);
    assert!(
        text.contains("ready = { tcp = 11300 }") && text.contains("setpriv --reuid=beanstalkd"),
        "{text}"
    );
    assert!(!said.contains("restart"), "{said}");
}

/// The trial boot's world file is temporary, so the error must not name it.
#[test]
fn a_package_that_does_not_exist_is_named_and_nothing_is_written() {
    let place = folder();
    let output = everett_at(place.path(), &["init", "no-such-package-anywhere"]);
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().last().unwrap_or_default();
    assert_eq!(last, "everett: there is no package no-such-package-anywhere in bookworm");
    assert_eq!(fs::read_dir(place.path()).expect("the folder").count(), 0);
}

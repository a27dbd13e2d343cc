//! Unmodified programs with the public SDKs for Antithesis. The lines that they send through the SDK arrive at Everett,
//! and become properties, coverage and the root moment (from which branches fork).
//!
//! * `c`: program that clang from a Debian package instruments
//! * `python`: a program with the Python package from PyPI, explored and reported
//! * `quiet`: quiet periods (times without faults, which programs request), SDK lines in files, and services that
//!   report the end of their setup late or never
//! * `rust`: a program with the crate from crates.io, linked with the SDK's library, and linked statically without it
//!
//! Each program also runs on this host in the SDK's local mode, and the verdicts are compared.

mod c;
mod python;
mod quiet;
mod rust;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use everett_session::world::event::{Event, What};
use everett_world_file::FileEntry;
use serde_json::Value;

use crate::support::shown;

/// Outcomes of assertions. The key is kind and name. The values say whether the condition ever held, and whether it
/// ever failed.
type Outcomes = BTreeMap<(String, String), (bool, bool)>;

/// Returns the outcomes in the output of the SDK's local mode. This parser is separate from Everett's, so that they
/// do not share errors.
fn outcomes(lines: &str) -> Outcomes {
    let mut all = Outcomes::new();
    for line in lines.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let Some(assertion) = value.get("antithesis_assert") else { continue };
        let text = |name: &str| assertion[name].as_str().unwrap().to_owned();
        let flag = |name: &str| assertion[name].as_bool().unwrap();
        let (held, failed) = all.entry((kind(assertion).to_owned(), text("id"))).or_default();
        if flag("hit") {
            *held |= flag("condition");
            *failed |= !flag("condition");
        }
    }
    all
}

/// Returns the kind of an assertion, by the table in the SDK's description of the format.
fn kind(assertion: &Value) -> &'static str {
    match (assertion["assert_type"].as_str().unwrap(), assertion["must_hit"].as_bool().unwrap()) {
        ("always", true) => "Always",
        ("always", false) => "AlwaysOrUnreachable",
        ("sometimes", _) => "Sometimes",
        ("reachability", true) => "Reachable",
        ("reachability", false) => "Unreachable",
        other => panic!("{other:?}"),
    }
}

/// Returns the verdict on an assertion, by the table in the SDK's description of the format.
fn verdict(kind: &str, (held, failed): (bool, bool)) -> &'static str {
    match kind {
        "Always" if failed => "failed",
        "Always" if held => "passed",
        "AlwaysOrUnreachable" | "Unreachable" => {
            if failed {
                "failed"
            } else {
                "passed"
            }
        }
        "Sometimes" | "Reachable" if held => "passed",
        _ => "never_reached",
    }
}

/// Returns the lines that arrived through the SDK.
fn sdk_lines(events: &[Event]) -> Vec<&str> {
    let text = |event: &'_ Event| matches!(event.what, What::Sdk { .. });
    let lines = events.iter().filter(|event| text(event));
    lines
        .filter_map(|event| if let What::Sdk { text } = &event.what { Some(text.as_str()) } else { None })
        .collect()
}

/// Returns the files below a host folder, as entries below a guest folder.
fn files_below(folder: &Path, guest: &str) -> Vec<FileEntry> {
    let mut files = Vec::new();
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for path in names {
        let name = format!("{guest}/{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            files.extend(files_below(&path, &name));
        } else {
            files.push(FileEntry::of_root(name, std::fs::read(&path).unwrap().into()));
        }
    }
    files
}

/// Runs a command that must succeed.
fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", shown(&output));
}

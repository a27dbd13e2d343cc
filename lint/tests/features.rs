//! What the demo has compiled, the tests use: a library with other features would be compiled again, and with it all that
//! depends on it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Crates whose features are the difference between the demo's program and the whole one.
const DIFFERENT: [&str; 2] = ["everett", "everett-session"];

/// Returns each package of a build, with the sets of features with which the build compiles it.
fn packages(arguments: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(top).args(["tree", "--locked", "--prefix", "none", "--format", "{p}\t{f}"]);
    let output = cargo.args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let Some((package, features)) = line.trim_end_matches(" (*)").split_once('\t') else { continue };
        // Name and version; local crates have a path, too.
        let package = package.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ");
        found.entry(package).or_default().insert(features.to_owned());
    }
    found
}

#[test]
fn tests_use_the_libraries_of_the_demo() {
    let demo = packages(&["-p", "everett", "--no-default-features", "--edges", "normal,build"]);
    let tests = packages(&["--workspace", "--edges", "normal,build,dev"]);
    assert!(demo.len() > 100, "{} packages", demo.len());
    let is_different = |package: &str| DIFFERENT.iter().any(|name| package.split(' ').next() == Some(*name));
    let again: Vec<String> = demo
        .iter()
        .filter(|(package, _)| !is_different(package))
        .flat_map(|(package, sets)| {
            let known = &tests[package];
            sets.difference(known)
                .map(move |set| format!("{package}: {set:?} in the demo, {known:?} in tests"))
        })
        .collect();
    assert!(again.is_empty(), "{}", again.join("\n"));
}

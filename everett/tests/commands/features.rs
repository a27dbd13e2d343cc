//! Tests that builds with different features share compiled crates. After `cargo demo`, `cargo build` compiles only
//! `everett`, `everett-session` and `everett-symbols` again. After `cargo build`, `cargo test` compiles no crate again.

use std::collections::BTreeSet;
use std::process::Command;

/// Arguments of `cargo tree` for the program with all features.
const FULL: [&str; 4] = ["--package", "everett", "--edges", "normal,build"];
/// Arguments of `cargo tree` for the program without features.
const SMALL: [&str; 5] = ["--package", "everett", "--edges", "normal,build", "--no-default-features"];

/// Returns the crates that cargo builds, with their versions and features.
fn crates(arguments: &[&str]) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--prefix", "none", "--format", "{p} {f}"])
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines()
        .map(|line| line.trim_end_matches(" (*)").to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

/// Fails if a crate of the build `smaller` has another version or other features in the build `larger`. Skips the
/// crates named in `own`.
fn assert_shared(smaller: &BTreeSet<String>, larger: &BTreeSet<String>, own: &[&str]) {
    let is_own = |line: &&String| line.split(' ').next().is_some_and(|name| own.contains(&name));
    let other: Vec<&String> = smaller.difference(larger).filter(|line| !is_own(line)).collect();
    assert!(
        other.is_empty(),
        "the larger build needs other features of these crates; add them to the dependencies in everett/Cargo.toml or python/Cargo.toml: {other:#?}"
    );
    assert!(smaller.len() > 100, "{smaller:?}");
}

/// True if a crate with this name is among the crates.
fn has(crates: &BTreeSet<String>, name: &str) -> bool {
    crates.iter().any(|line| line.split(' ').next() == Some(name))
}

#[test]
fn tests_use_the_programs_build_of_each_crate() {
    assert_shared(&crates(&FULL), &crates(&["--workspace", "--edges", "normal,build,dev"]), &[]);
}

#[test]
fn the_python_package_uses_the_workspaces_build_of_each_crate() {
    let package = crates(&["--package", "everett-python", "--edges", "normal,build"]);
    assert_shared(&package, &crates(&["--workspace", "--edges", "normal,build,dev"]), &[]);
}

#[test]
fn the_whole_program_uses_the_small_ones_build_of_each_crate() {
    // Cargo compiles these crates once for each set of features of the program.
    assert_shared(&crates(&SMALL), &crates(&FULL), &["everett", "everett-session", "everett-symbols"]);
}

#[test]
fn the_small_program_has_no_crate_for_features_that_it_lacks() {
    let (small, full) = (crates(&SMALL), crates(&FULL));
    for name in [
        "everett-guest-programs",
        "everett-inspect",
        "framehop",
        "libsqlite3-sys",
        "pgp",
        "ratatui",
        "ring",
        "rusqlite",
        "rustls",
        "ureq",
    ] {
        assert!(has(&full, name), "the whole program has no crate {name}");
        assert!(!has(&small, name), "the small program has the crate {name}");
    }
}

/// `everett doctor` and the refusal of container images must state the same features.
#[test]
fn a_feature_switches_on_its_own_part_only() {
    // Worlds of container images and throw-away forks each need one of the programs for guests.
    let parts: [(&str, &[&str]); 2] =
        [("everett-guest-programs", &["containers", "inside"]), ("everett-inspect", &["inside"])];
    for feature in ["containers", "inside"] {
        let crates = crates(&[&SMALL[..], &["--features", feature]].concat());
        for (name, of) in parts {
            assert_eq!(has(&crates, name), of.contains(&feature), "{name} in the build with {feature} only");
        }
    }
}

//! `cargo test` compiles no crate again that `cargo run` has compiled: both build each crate with the same features.

use std::collections::BTreeSet;
use std::process::Command;

/// Returns the crates that cargo builds, each with its version and features.
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

#[test]
fn tests_use_the_programs_build_of_each_crate() {
    let program = crates(&["--package", "everett", "--edges", "normal,build"]);
    let tests = crates(&["--workspace", "--edges", "normal,build,dev"]);
    let other: Vec<&String> = program.difference(&tests).collect();
    assert!(
        other.is_empty(),
        "tests need other features of these crates; add them to the dependencies in tools/Cargo.toml: {other:#?}"
    );
    assert!(program.len() > 100, "{program:?}");
}

//! Runs test cases that are files. Each TOML file in this folder or in `inexact` contains the arguments of a command
//! line, the expected exit status and the expected output.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Command line, and the expected result.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    args: Vec<String>,
    #[serde(default)]
    status: i32,
    stdout: String,
    stderr: String,
}

/// Runs the case in each TOML file of a folder. The path of the folder, and paths in the cases, are relative to the
/// folder of the package `everett`.
pub(crate) fn run(folder: &str) {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> =
        fs::read_dir(top.join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(!files.is_empty(), "{folder} has no cases");
    let failed: Vec<String> = files.iter().filter_map(|file| differences(top, file)).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Runs a case. Returns `None` if all is as expected, else the names of the parts that differ and the whole output.
fn differences(top: &Path, file: &Path) -> Option<String> {
    let case: Case = toml::from_str(&fs::read_to_string(file).unwrap())
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let output =
        Command::new(env!("CARGO_BIN_EXE_everett")).args(&case.args).current_dir(top).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let same = [
        ("status", output.status.code() == Some(case.status)),
        ("stdout", is_as_expected(&case.stdout, &stdout)),
        ("stderr", is_as_expected(&case.stderr, &stderr)),
    ];
    let other: Vec<&str> = same.iter().filter(|(_, same)| !same).map(|(name, _)| *name).collect();
    let report = || format!("{}: {other:?} differ\n{}\n{stdout}\n{stderr}", file.display(), output.status);
    (!other.is_empty()).then(report)
}

/// True if the lines match. In `expected`, a line `...` stands for any number of lines, and `[..]` for any text
/// within a line.
pub(crate) fn is_as_expected(expected: &str, found: &str) -> bool {
    lines_match(&expected.lines().collect::<Vec<_>>(), &found.lines().collect::<Vec<_>>())
}

fn lines_match(expected: &[&str], found: &[&str]) -> bool {
    match expected {
        [] => found.is_empty(),
        ["...", rest @ ..] => (0..=found.len()).any(|skipped| lines_match(rest, &found[skipped..])),
        [first, rest @ ..] => found
            .split_first()
            .is_some_and(|(line, more)| line_matches(first, line) && lines_match(rest, more)),
    }
}

fn line_matches(expected: &str, found: &str) -> bool {
    match expected.split_once("[..]") {
        None => expected == found,
        Some((start, more)) => found.strip_prefix(start).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| line_matches(more, &rest[at..]))
        }),
    }
}

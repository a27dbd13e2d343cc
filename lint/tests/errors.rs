//! Tests that the text of an error does not repeat the error's cause, and that no error hides its cause.

use std::fs;
use std::path::PathBuf;

use everett_lint::errors::{ErrorTypes, offenders};
use everett_lint::files;

/// Folders of the programs that run in guests. These programs report an error in one line, without a chain of causes.
const GUESTS: [&str; 5] = [
    "guest-image/agent/src",
    "guest-image/shim",
    "guest-image/init",
    "guest-image/inside",
    "guest-image/sdk",
];

#[test]
fn each_cause_is_told_once() {
    let top = files::top();
    let of_guest = |path: &PathBuf| GUESTS.iter().any(|guest| path.starts_with(top.join(guest)));
    let sources: Vec<(PathBuf, String)> = files::below(top, ".rs")
        .unwrap()
        .into_iter()
        .filter(|path| !of_guest(path))
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect();
    assert!(sources.len() > 500, "only {} files were found", sources.len());
    let mut types = ErrorTypes::default();
    sources.iter().for_each(|(_, text)| types.add(text).unwrap());
    let mut found = Vec::new();
    for (path, text) in &sources {
        let path = path.strip_prefix(top).unwrap_or(path).display();
        found.extend(offenders(text, &types).unwrap().into_iter().map(|what| format!("{path}: {what}")));
    }
    assert!(found.is_empty(), "see \"Rules\" in CONTRIBUTING.md:\n{}", found.join("\n"));
}

fn found(text: &str) -> Vec<String> {
    let mut types = ErrorTypes::default();
    types.add(text).unwrap();
    offenders(text, &types).unwrap()
}

#[test]
fn texts_that_repeat_or_hide_a_cause_are_found() {
    let repeats = "the text repeats its cause, the field";
    let shows = "the text shows an error that is not marked as its source, the field";
    let hides = "neither the text nor the source has the cause, the field";
    for (text, expected) in [
        (
            r#"#[error("cannot read {path}: {source}")] V { path: String, source: io::Error }"#,
            Some((repeats, "source")),
        ),
        (r#"#[error("cannot read: {0}")] V(#[from] io::Error)"#, Some((repeats, "0"))),
        (
            r#"#[error("{{{}}}: {:>4}", path.display(), .why)] V { path: PathBuf, #[source] why: Bad }"#,
            Some((repeats, "why")),
        ),
        (
            r#"#[error("cannot read: {}", in_words(source))] V { source: io::Error }"#,
            Some((repeats, "source")),
        ),
        (r#"#[error("{a}", a = .0)] V(Bad)"#, Some((shows, "0"))),
        (r#"#[error("{}", .0)] V(Bad)"#, Some((shows, "0"))),
        (r#"#[error("{why:?}")] V { why: crate::Bad }"#, Some((shows, "why"))),
        (r#"#[error("it failed")] V { number: u8, why: Bad }"#, Some((hides, "why"))),
        (r#"#[error("{0}: it failed")] V(u8, io::Error)"#, Some((hides, "1"))),
        (r#"#[error("cannot read {0}")] V(String, #[source] io::Error)"#, None),
        (r#"#[error("cannot read {}", path.display())] V { path: PathBuf, source: Bad }"#, None),
        (r#"#[error(transparent)] V(#[from] Bad)"#, None),
        // Allowed: texts that describe a cause in other words, and a field that is not an error.
        (r#"#[error("{}", in_words(.0))] V(io::Error)"#, None),
        (r#"#[error("{0} of {why}")] V(u8, String)"#, None),
    ] {
        let source = format!(
            "#[derive(Debug, thiserror::Error)] enum E {{ {text} }} impl std::error::Error for Bad {{}}"
        );
        let expected: Vec<String> =
            expected.into_iter().map(|(what, field)| format!("E::V: {what} {field}")).collect();
        assert_eq!(found(&source), expected, "{text}");
    }
    let structs = r#"#[derive(thiserror::Error)] #[error("{what}: {why}")] struct S { what: u8, why: E }
        #[derive(thiserror::Error)] enum E {}"#;
    assert_eq!(found(structs), [format!("S: {shows} why")]);
}

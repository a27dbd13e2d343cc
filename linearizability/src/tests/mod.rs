//! Helpers for the tests of histories: a short notation.

mod bounds;
mod documented;
mod drawn;
mod examples;
mod follow;
mod gists;
mod gone;
mod lines;
mod models;
mod naive;

use serde_json::{Value, json};

use super::*;

/// Parses a short notation, one line each: `process type f value`, with the value as JSON without spaces, or without a
/// value. Each line is 100 ms after the one before it.
fn written(text: &str) -> Vec<Line> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .enumerate()
        .map(|(i, line)| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let mut object =
                json!({"process": words[0].parse::<u64>().unwrap(), "type": words[1], "f": words[2]});
            if let Some(value) = words.get(3) {
                object["value"] = serde_json::from_str(value).unwrap();
            }
            Line { vtime_ns: (i as u64 + 1) * 100_000_000, node: "n1".to_owned(), text: object.to_string() }
        })
        .collect()
}

/// Returns the report on lines without problems.
fn report_on(spec: Spec, lines: Vec<Line>) -> Report {
    let (history, problems) = History::read(spec, lines);
    assert!(problems.is_empty(), "{problems}");
    check(&history, Budget::default())
}

fn report(kind: ModelKind, text: &str) -> Report {
    report_on(Spec::new(kind), written(text))
}

/// Returns the text of the only key's violation; empty if the key is fine.
fn said(kind: ModelKind, text: &str) -> String {
    let report = report(kind, text);
    assert_eq!(report.keys.len(), 1, "{report}");
    match &report.keys[0].verdict {
        Verdict::Fine => String::new(),
        Verdict::Violation(evidence) => evidence.to_string(),
        Verdict::Unknown { why } => panic!("{why}"),
    }
}

fn fine(kind: ModelKind, text: &str) {
    assert_eq!(said(kind, text), "", "{text}");
}

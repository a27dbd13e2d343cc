//! What the tests of histories share: a short way to write them.

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

/// Lines from a short form, one a line: `process type f value`, the value as JSON without spaces, or none. Each line is
/// 100 ms after the one before it.
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

/// A report on lines that have nothing wrong with them.
fn report_on(spec: Spec, lines: Vec<Line>) -> Report {
    let (history, problems) = History::read(spec, lines);
    assert!(problems.is_empty(), "{problems}");
    check(&history, Budget::default())
}

fn report(kind: ModelKind, text: &str) -> Report {
    report_on(Spec::new(kind), written(text))
}

/// What is said of the only key: nothing if it is fine, else what its violation says.
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

//! Tests of histories, with a short notation for them.

mod bounds;
mod causes;
mod documented;
mod drawn;
mod evidence;
mod examples;
mod lines;
mod lost_writes;
mod models;
mod naive;

use serde_json::{Value, json};

use super::spec::ModelKind;
use super::*;

const MODELS: [ModelKind; 6] =
    [ModelKind::Register, ModelKind::Cas, ModelKind::Kv, ModelKind::Queue, ModelKind::Set, ModelKind::Lock];

/// Returns a model with its default initial value: null, or empty.
fn spec(model: ModelKind) -> Spec {
    Spec::with_initial(model, Value::Null).unwrap()
}

/// Returns a line that node n1 wrote.
fn line(vtime_ns: u64, text: impl ToString) -> HistoryLine {
    HistoryLine { vtime_ns, node: "n1".to_owned(), text: text.to_string() }
}

/// Parses a short notation with one event per line: `process type f value`. The value is JSON without spaces, and may
/// be missing. Each line is 100 ms after the line before it.
fn written(text: &str) -> Vec<HistoryLine> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .enumerate()
        .map(|(i, text)| {
            let words: Vec<&str> = text.split_whitespace().collect();
            let mut object =
                json!({"process": words[0].parse::<u64>().unwrap(), "type": words[1], "f": words[2]});
            if let Some(value) = words.get(3) {
                object["value"] = serde_json::from_str(value).unwrap();
            }
            line((i as u64 + 1) * 100_000_000, object)
        })
        .collect()
}

/// Adds this key to the events of lines.
fn of_key(key: &str, mut lines: Vec<HistoryLine>) -> Vec<HistoryLine> {
    for line in &mut lines {
        let mut object: Value = serde_json::from_str(&line.text).unwrap();
        object["key"] = key.into();
        line.text = object.to_string();
    }
    lines
}

/// Returns the history of these lines, and the errors in the lines.
fn read(spec: Spec, lines: impl IntoIterator<Item = HistoryLine>) -> (History, Problems) {
    let mut reader = Reader::new(spec);
    lines.into_iter().for_each(|line| reader.push(&line));
    reader.finish()
}

/// Returns the history of lines that must be valid.
fn read_all(spec: Spec, lines: impl IntoIterator<Item = HistoryLine>) -> History {
    let (history, problems) = read(spec, lines);
    assert_eq!(problems, Problems::default());
    history
}

/// Returns the report on lines that must be valid.
fn report_on(spec: Spec, lines: Vec<HistoryLine>) -> Report {
    check(&read_all(spec, lines), Budget::default())
}

fn report(kind: ModelKind, text: &str) -> Report {
    report_on(spec(kind), written(text))
}

/// Returns the violations, by key.
fn violations(report: &Report) -> impl Iterator<Item = &Evidence> {
    report.keys.iter().filter_map(|key| match &key.verdict {
        Verdict::Violation(evidence) => Some(&**evidence),
        Verdict::Fine | Verdict::Unknown { .. } => None,
    })
}

/// True if no write is lost, no line has an error, and every key is known to be linearizable.
fn is_fine(report: &Report) -> bool {
    report.lost_count == 0
        && report.problems == 0
        && report.keys.iter().all(|key| key.verdict == Verdict::Fine)
}

/// Returns the text of the only key's violation. Empty if the key has no violation.
fn said(kind: ModelKind, text: &str) -> String {
    let report = report(kind, text);
    assert_eq!(report.keys.len(), 1, "{report:?}");
    match &report.keys[0].verdict {
        Verdict::Fine => String::new(),
        Verdict::Violation(evidence) => evidence.to_string(),
        Verdict::Unknown { why } => panic!("{why:?}"),
    }
}

fn fine(kind: ModelKind, text: &str) {
    assert_eq!(said(kind, text), "", "{text}");
}

//! Tests of invalid lines in a history: the errors, their positions, and the effect on other lines.

use super::*;
use crate::limits::{HISTORY_LINE_BYTES_MAX, PROBLEMS_MAX};
use crate::reader::Bounds;
use crate::spec::NoInitial;

fn read(kind: ModelKind, texts: &[&str]) -> (History, Problems) {
    super::read(spec(kind), texts.iter().map(|text| line(1_500_000_000, text)))
}

/// Returns the errors in a history with these lines, as `LINE NUMBER: MESSAGE`.
fn wrong(kind: ModelKind, texts: &[&str]) -> Vec<String> {
    read(kind, texts).1.first.iter().map(|problem| format!("{}: {}", problem.line, problem.what)).collect()
}

#[test]
fn problems_have_their_places() {
    let texts = ["{}", r#"{"type":"invoke","process":1,"f":"read"}"#, "x"];
    let (_, problems) =
        super::read(spec(ModelKind::Register), (10..).zip(texts).map(|(at, text)| line(at, text)));
    let problem = |line, vtime_ns, what| Problem { line, vtime_ns, what };
    assert_eq!(problems.first, [problem(1, 10, Wrong::Missing("type")), problem(3, 12, Wrong::NotAnObject)]);
}

#[test]
fn each_line_that_cannot_be_read_is_reported() {
    let cases: &[(&str, &str)] = &[
        ("", "not a JSON object"),
        (r#"["invoke",1,"read"]"#, "not a JSON object"),
        (r#"{"type":"#, "not JSON: EOF while parsing a value at column 8"),
        (r#"{"type":"ok","type":"ok"}"#, "not JSON: duplicate field `type` at column 19"),
        (r#"{"process":1,"f":"read"}"#, "type is missing"),
        (r#"{"type":null,"process":1,"f":"read"}"#, "type is missing"),
        (r#"{"type":1}"#, "type must be a text"),
        (
            r#"{"type":"begin","process":1}"#,
            r#"unknown type "begin"; the types are invoke, ok, fail and info"#,
        ),
        (r#"{"type":"invoke","f":"read"}"#, "process is missing"),
        (r#"{"type":"invoke","process":1.5,"f":"read"}"#, "process must be an integer or a text"),
        (r#"{"type":"invoke","process":1}"#, "f is missing"),
    ];
    for (text, expected) in cases {
        assert_eq!(wrong(ModelKind::Register, &[text]), [format!("1: {expected}")], "{text}");
    }
    // The loop below puts the beginning of an invocation before each of these texts.
    let cases: &[(ModelKind, &str, &str)] = &[
        (ModelKind::Register, r#""f":7}"#, "f must be a text"),
        (ModelKind::Register, r#""f":"read","key":[1]}"#, "key must be a text, a number, true or false"),
        (
            ModelKind::Register,
            r#""f":"read","key":1e300}"#,
            "key has a number that is not exact; write it as a text",
        ),
        (
            ModelKind::Register,
            r#""f":"write","value":{"a":[18446744073709551617]}}"#,
            "value has a number that is not exact; write it as a text",
        ),
        (
            ModelKind::Register,
            r#""f":"cas","value":[1,2]}"#,
            r#"a register has no operation "cas"; it has read, get, write, put, set"#,
        ),
        (ModelKind::Register, r#""f":"write"}"#, "the value of write must be what is written"),
        (ModelKind::Cas, r#""f":"cas","value":[1,2,3]}"#, "the value of cas must be [old, new]"),
        (
            ModelKind::Queue,
            r#""f":"enqueue","value":null}"#,
            "the value of enqueue must be an element, which null is not",
        ),
        (ModelKind::Set, r#""f":"add"}"#, "the value of add must be an element, which null is not"),
    ];
    for (kind, rest, expected) in cases {
        let text = format!(r#"{{"type":"invoke","process":1,{rest}"#);
        assert_eq!(wrong(*kind, &[&text]), [format!("1: {expected}")], "{text}");
    }
    let long = format!(r#"{{"type":"invoke","process":1,"f":"read"}}{}"#, " ".repeat(HISTORY_LINE_BYTES_MAX));
    assert_eq!(
        wrong(ModelKind::Register, &[&long]),
        [format!("1: a line has at most {HISTORY_LINE_BYTES_MAX} bytes")]
    );
}

#[test]
fn each_completion_that_does_not_fit_is_reported() {
    let cases: &[(ModelKind, &str, &str, &str)] = &[
        (
            ModelKind::Set,
            r#"{"type":"invoke","process":1,"f":"contains","value":3}"#,
            r#"{"type":"ok","process":1,"f":"contains","value":[4,true]}"#,
            "the value of contains must be [value, true or false], with the value of the invocation",
        ),
        (
            ModelKind::Set,
            r#"{"type":"invoke","process":1,"f":"read"}"#,
            r#"{"type":"ok","process":1,"f":"read","value":[4,5,4]}"#,
            "the value of read must be an array of the members, each once",
        ),
        (
            ModelKind::Set,
            r#"{"type":"invoke","process":1,"f":"read"}"#,
            r#"{"type":"ok","process":1,"f":"read"}"#,
            "the value of read must be an array of the members, each once",
        ),
        (
            ModelKind::Register,
            r#"{"type":"invoke","process":1,"f":"read"}"#,
            r#"{"type":"ok","process":1,"f":"write"}"#,
            "f differs from the invocation in line 1; the outcome of that operation is now unknown",
        ),
        (
            ModelKind::Register,
            r#"{"type":"invoke","process":1,"f":"read","key":"x"}"#,
            r#"{"type":"ok","process":1,"f":"read","key":"y"}"#,
            "key differs from the invocation in line 1; the outcome of that operation is now unknown",
        ),
        (
            ModelKind::Register,
            r#"{"type":"invoke","process":1,"f":"read"}"#,
            r#"{"type":"ok","process":"1","f":"read"}"#,
            "process \"1\" has no open operation to complete; this one may have happened at any time, or never",
        ),
        (
            ModelKind::Register,
            r#"{"type":"invoke","process":1,"f":"read"}"#,
            r#"{"type":"invoke","process":1,"f":"read"}"#,
            "process 1 starts another operation while its operation of line 1 is open; the outcome of line 1 is now unknown",
        ),
    ];
    for (kind, first, second, expected) in cases {
        let (history, problems) = read(*kind, &[first, second]);
        let reported: Vec<String> = problems.first.iter().map(|problem| problem.what.to_string()).collect();
        assert_eq!(reported, [*expected], "{second}");
        assert!(history.operations.iter().all(|operation| operation.completed().is_none()), "{second}");
    }
}

/// If an invocation is invalid, its completion is not reported as a second error.
#[test]
fn one_mistake_is_one_problem() {
    let texts = [
        r#"{"type":"invoke","process":1,"f":"write"}"#,
        r#"{"type":"ok","process":1,"f":"write","value":1}"#,
        r#"{"type":"ok","process":1,"f":"write","value":1}"#,
    ];
    let wrong = wrong(ModelKind::Register, &texts);
    assert_eq!(wrong.len(), 2);
    assert!(wrong[1].starts_with("3: process 1 has no open operation"), "{wrong:?}");
}

/// A write whose invocation is missing may explain a read, so no violation is reported.
#[test]
fn a_completion_without_invocation_may_have_happened() {
    let read_of_5 =
        [r#"{"type":"invoke","process":2,"f":"read"}"#, r#"{"type":"ok","process":2,"f":"read","value":5}"#];
    let stray = r#"{"type":"ok","process":1,"f":"write","value":5}"#;
    for (texts, expected) in [
        (vec![read_of_5[0], read_of_5[1]], false),
        (vec![read_of_5[0], read_of_5[1], stray], true),
        (vec![read_of_5[0], read_of_5[1], r#"{"type":"fail","process":1,"f":"write","value":5}"#], false),
        (vec![read_of_5[0], read_of_5[1], r#"{"type":"ok","process":1,"f":"write","value":4}"#], false),
    ] {
        let report = check(&read(ModelKind::Register, &texts).0, Budget::default());
        assert_eq!(report.keys[0].verdict == Verdict::Fine, expected, "{texts:?}");
        // A report with an error is never fine, even if all verdicts are.
        assert!(!is_fine(&report));
    }
}

/// A write with an invalid line may or may not have taken effect.
#[test]
fn an_operation_with_a_problem_is_of_unknown_outcome() {
    for (value, is_fine) in [(5, true), (6, true), (7, false)] {
        let texts = [
            r#"{"type":"invoke","process":1,"f":"write","value":6}"#.to_owned(),
            r#"{"type":"ok","process":1,"f":"write"}"#.to_owned(),
            r#"{"type":"invoke","process":1,"f":"write","value":5}"#.to_owned(),
            r#"{"type":"ok","process":1,"f":"read"}"#.to_owned(),
            r#"{"type":"invoke","process":1,"f":"read"}"#.to_owned(),
            format!(r#"{{"type":"ok","process":1,"f":"read","value":{value}}}"#),
        ];
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (history, problems) = read(ModelKind::Register, &texts);
        assert_eq!(problems.count, 1);
        assert_eq!(check(&history, Budget::default()).keys[0].verdict == Verdict::Fine, is_fine, "{value}");
    }
}

#[test]
fn values_are_equal_in_whatever_form_they_are_written() {
    for (one, other, equal) in [
        ("1", "1.0", true),
        ("0", "-0.0", true),
        ("1e3", "1000", true),
        (r#"{"a":1,"b":[2.0]}"#, r#"{"b":[2],"a":1}"#, true),
        (r#""\u0061""#, r#""a""#, true),
        ("1.5", "1.50", true),
        ("1", r#""1""#, false),
        ("[1,2]", "[2,1]", false),
        ("18446744073709551615", "18446744073709551614", false),
        ("0", "null", false),
        ("false", "0", false),
    ] {
        let texts = [
            format!(r#"{{"type":"invoke","process":1,"f":"put","value":{one}}}"#),
            r#"{"type":"ok","process":1}"#.to_owned(),
            r#"{"type":"invoke","process":1,"f":"get"}"#.to_owned(),
            format!(r#"{{"type":"ok","process":1,"f":"get","value":{other}}}"#),
        ];
        let report = report_on(spec(ModelKind::Kv), texts.iter().map(|text| line(0, text)).collect());
        assert_eq!(is_fine(&report), equal, "writing {one} and reading {other}");
    }
}

#[test]
fn keys_are_separate_and_so_are_processes_of_different_nodes() {
    let at =
        |node: &str, text: &str| HistoryLine { vtime_ns: 0, node: node.to_owned(), text: text.to_owned() };
    let lines = vec![
        at("n1", r#"{"type":"invoke","process":1,"f":"write","key":"x","value":1}"#),
        at("n2", r#"{"type":"invoke","process":1,"f":"write","key":1,"value":2}"#),
        at("n1", r#"{"type":"ok","process":1,"f":"write","key":"x"}"#),
        at("n2", r#"{"type":"ok","process":1,"f":"write","key":1}"#),
        at("n1", r#"{"type":"invoke","process":1,"f":"read","key":"1"}"#),
        at("n1", r#"{"type":"ok","process":1,"f":"read","value":null}"#),
        at("n1", r#"{"type":"invoke","process":1,"f":"read"}"#),
        at("n1", r#"{"type":"ok","process":1,"f":"read","value":1}"#),
        at("n1", r#"{"type":"invoke","process":1,"f":"read","key":null}"#),
        at("n1", r#"{"type":"ok","process":1,"f":"read"}"#),
    ];
    let report = report_on(spec(ModelKind::Register), lines);
    let keys: Vec<(Option<&str>, usize, bool)> = report
        .keys
        .iter()
        .map(|key| (key.key.as_deref(), key.operations, key.verdict == Verdict::Fine))
        .collect();
    assert_eq!(
        keys,
        [(Some("\"x\""), 1, true), (Some("1"), 1, true), (Some("\"1\""), 1, true), (None, 2, false)]
    );
}

#[test]
fn problems_that_are_not_listed_are_counted() {
    let (_, problems) = read(ModelKind::Register, &vec!["?"; PROBLEMS_MAX + 7]);
    assert_eq!((problems.first.len(), problems.count), (PROBLEMS_MAX, PROBLEMS_MAX as u64 + 7));
}

/// Lines beyond a bound are not read, so the history ends early.
#[test]
fn a_history_ends_at_its_bounds() {
    let lines = written("1 invoke write 1\n 1 ok write\n 1 invoke write 2\n 2 invoke read\n 2 ok read 9");
    for (bounds, operations, expected) in [
        (Bounds { operations: 1, bytes: u64::MAX }, 1, Some((3, Wrong::TooManyOperations))),
        (Bounds { operations: 3, bytes: 1 }, 0, Some((1, Wrong::TooLarge))),
        (Bounds { operations: 3, bytes: u64::MAX }, 3, None),
    ] {
        let mut reader = Reader::bounded(spec(ModelKind::Register), bounds);
        lines.iter().for_each(|line| reader.push(line));
        let (history, problems) = reader.finish();
        assert_eq!(history.operations.len(), operations);
        let is_fine = check(&history, Budget::default()).keys.iter().all(|key| key.verdict == Verdict::Fine);
        assert_eq!(is_fine, expected.is_some());
        let found = problems.first.into_iter().map(|problem| (problem.line, problem.what));
        assert_eq!(found.collect::<Vec<_>>(), Vec::from_iter(expected));
    }
}

#[test]
fn models_have_names_and_some_have_an_initial_value() {
    for kind in MODELS {
        assert_eq!(serde_json::from_value::<Spec>(json!({"model": kind.name()})).unwrap(), spec(kind));
    }
    let zero: Spec = serde_json::from_value(json!({"model": "cas", "initial": 0.0})).unwrap();
    assert_eq!(zero, Spec::with_initial(ModelKind::Cas, json!(0)).unwrap());
    let error = serde_json::from_value::<Spec>(json!({"model": "queue", "initial": 0})).unwrap_err();
    assert_eq!(error.to_string(), "a queue has no initial value; only a register and a cas have one");
    assert_eq!(Spec::with_initial(ModelKind::Cas, json!(1e99)), Err(NoInitial::Inexact));
    let text = "1 invoke read\n 1 ok read 7";
    let seven = Spec::with_initial(ModelKind::Register, json!(7)).unwrap();
    assert!(is_fine(&report_on(seven, written(text))));
    assert!(!is_fine(&report(ModelKind::Register, text)));
}

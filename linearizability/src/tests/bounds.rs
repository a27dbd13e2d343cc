//! Tests that a check stays within its budget of search steps and memory, and that large histories can be checked.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use super::*;

/// Returns a history of many concurrent writes with an impossible read at the end.
fn hard() -> History {
    let mut text: String = (0..9).map(|i| format!("{i} invoke write {i}\n")).collect();
    text += &(20..23).map(|i| format!("{i} invoke read\n")).collect::<String>();
    text += &(20..23).map(|i| format!("{i} ok read {}\n", i - 20)).collect::<String>();
    text += &(0..9).map(|i| format!("{i} ok write\n")).collect::<String>();
    text += "1 invoke read\n 1 ok read 99";
    read_all(spec(ModelKind::Register), written(&text))
}

#[test]
fn beyond_the_budget_the_verdict_is_unknown() {
    let history = hard();
    let tight = Budget { steps: 2_000, ..Budget::default() };
    let small = Budget { cache_bytes: 64 * 500, ..Budget::default() };
    for (budget, why) in [(tight, Limit::Steps(2_000)), (small, Limit::Memory(64 * 500))] {
        let report = check(&history, budget);
        assert_eq!(report.keys[0].verdict, Verdict::Unknown { why });
        assert!(!is_fine(&report));
        // Results that need no search are still reported.
        assert_eq!(report.lost_count, 1);
    }
}

/// A search stores the choices that it has not yet tried. With many concurrent operations there are many of them.
#[test]
fn many_concurrent_operations_exceed_the_memory() {
    let mut text: String = (0..2_000).map(|i| format!("{i} invoke write {i}\n")).collect();
    text += &(0..2_000).map(|i| format!("{i} ok write\n")).collect::<String>();
    let history = read_all(spec(ModelKind::Register), written(&text));
    let report = check(&history, Budget { cache_bytes: 16 << 20, ..Budget::default() });
    assert_eq!(report.keys[0].verdict, Verdict::Unknown { why: Limit::Memory(16 << 20) });
}

/// A larger budget does not change a verdict that a smaller budget reached.
#[test]
fn a_larger_budget_changes_no_verdict() {
    let history = hard();
    let mut verdicts = Vec::new();
    for steps in [1_000, 10_000, 100_000, 20_000_000] {
        let report = check(&history, Budget { steps, ..Budget::default() });
        verdicts.push(match &report.keys[0].verdict {
            Verdict::Fine => "fine",
            Verdict::Violation(_) => "violation",
            Verdict::Unknown { .. } => "unknown",
        });
    }
    assert!(verdicts.starts_with(&["unknown"]) && verdicts.ends_with(&["violation"]), "{verdicts:?}");
    assert!(!verdicts.contains(&"fine"), "{verdicts:?}");
    assert!(verdicts.is_sorted_by_key(|verdict| *verdict == "violation"), "{verdicts:?}");
}

/// A key that uses up its share of the search steps leaves the shares of other keys unchanged.
#[test]
fn a_hard_key_does_not_starve_others() {
    let mut text: String = (0..14).map(|i| format!("{i} invoke write {i}\n")).collect();
    text += &(0..14).map(|i| format!("{i} ok write\n")).collect::<String>();
    text += "1 invoke read\n 1 ok read 99";
    let easy = "30 invoke write 1\n 30 ok write\n 30 invoke read\n 30 ok read 2";
    let lines = [of_key("hard", written(&text)), of_key("easy", written(easy))].concat();
    let history = read_all(spec(ModelKind::Register), lines);
    let report = check(&history, Budget { steps: 400, ..Budget::default() });
    assert_eq!(report.keys[0].verdict, Verdict::Unknown { why: Limit::Steps(200) });
    assert_eq!(
        violations(&report).map(|evidence| evidence.key.as_deref()).collect::<Vec<_>>(),
        [Some("\"easy\"")]
    );
}

/// If the reader is told that lines were dropped, the history ends before the first dropped line. The reader reports
/// the first dropped line as an error, and ignores all lines after it.
#[test]
fn a_history_ends_where_lines_were_dropped() {
    let lines = written("1 invoke write 1\n 1 ok write\n 2 invoke read\n 2 ok read 9");
    let mut reader = Reader::new(spec(ModelKind::Register));
    lines[..3].iter().for_each(|line| reader.push(line));
    reader.cut(&lines[3]);
    reader.cut(&lines[3]);
    reader.push(&lines[3]);
    let (history, problems) = reader.finish();
    assert_eq!((problems.count, problems.first[0].line), (1, 4));
    assert_eq!(problems.first[0].what, Wrong::TooLarge);
    assert_eq!(history.operations.len(), 2);
    assert_eq!(violations(&check(&history, Budget::default())).count(), 0, "the read has no known outcome");
}

/// Open operation. The first field is the value to write, or `None` for a read. The second is the key's value after the
/// operation took effect, or `None` if the operation has not yet taken effect.
type Asked = (Option<u64>, Option<Option<u64>>);

/// Returns the lines of a correct history of `keys` registers with five clients each. The begin, effect and end of
/// different operations are interleaved at random. `different` is the number of distinct values. `unknown` is the
/// number of operations of unknown outcome per thousand.
fn real(keys: u64, operations: usize, different: u64, unknown: u64) -> Vec<HistoryLine> {
    let mut draws = ChaCha8Rng::seed_from_u64(7);
    let mut values: Vec<Option<u64>> = vec![None; keys as usize];
    // Open operation of each client of each key.
    let mut open: Vec<Option<Asked>> = vec![None; keys as usize * 5];
    let (mut lines, mut started) = (Vec::new(), 0);
    while started < operations || open.iter().any(Option::is_some) {
        let client = (draws.next_u64() % (keys * 5)) as usize;
        let key = client / 5;
        let mut event = |kind: &str, f: &str, value: Option<u64>| {
            let text = json!({"type": kind, "process": client, "f": f, "key": key, "value": value});
            lines.push(line(lines.len() as u64, text));
        };
        open[client] = match open[client].take() {
            None if started < operations => {
                started += 1;
                let write = (draws.next_u64().is_multiple_of(2)).then_some(draws.next_u64() % different);
                event("invoke", if write.is_some() { "write" } else { "read" }, write);
                Some((write, None))
            }
            None => None,
            Some((write, None)) => {
                values[key] = write.or(values[key]);
                Some((write, Some(values[key])))
            }
            Some((write, Some(saw))) => {
                let kind = if draws.next_u64() % 1000 < unknown { "info" } else { "ok" };
                event(kind, if write.is_some() { "write" } else { "read" }, saw);
                None
            }
        };
    }
    lines
}

#[test]
fn large_histories_take_few_steps() {
    let history = read_all(spec(ModelKind::Register), real(50, 20_000, 9, 0));
    assert_eq!((history.operations.len(), history.keys()), (20_000, 50));
    let report = check(&history, Budget { steps: 400_000, ..Budget::default() });
    assert!(is_fine(&report), "{report:?}");
}

/// One operation in fifty has an unknown outcome.
#[test]
fn unknown_outcomes_do_not_blow_up_large_histories() {
    let lines = real(10, 10_000, 1_000, 20);
    let history = read_all(spec(ModelKind::Register), lines.clone());
    let report = check(&history, Budget { steps: 1_000_000, ..Budget::default() });
    assert!(is_fine(&report), "{report:?}");
    // The check also finds a violation after all of these operations.
    let mut spoilt = lines;
    for key in 0..10 {
        for text in [
            format!(r#"{{"type":"invoke","process":"last","f":"read","key":{key}}}"#),
            format!(r#"{{"type":"ok","process":"last","f":"read","key":{key},"value":77}}"#),
        ] {
            spoilt.push(line(0, text));
        }
    }
    let history = read_all(spec(ModelKind::Register), spoilt);
    let report = check(&history, Budget::default());
    assert_eq!((violations(&report).count(), report.unknown().count()), (10, 0), "{report:?}");
    assert!(violations(&report).all(|evidence| evidence.operation.what == "read of 77"));
}

/// Jepsen's set test: many adds, some of unknown outcome, and one read at the end.
#[test]
fn a_set_with_many_unknown_adds_is_judged() {
    let read = |missing: u32| {
        let mut text: String = (0..400)
            .map(|i| format!("{i} invoke add {i}\n{i} {} add\n", if i % 4 == 0 { "info" } else { "ok" }))
            .collect();
        let members: Vec<u32> = (0..400).filter(|i| i % 8 != 0 && *i != missing).collect();
        text += &format!("1 invoke read\n 1 ok read {}", json!(members));
        report(ModelKind::Set, &text)
    };
    assert!(is_fine(&read(8)));
    let report = read(9);
    assert_eq!((violations(&report).count(), report.lost_count), (1, 1), "{report:?}");
    let text = violations(&report).next().unwrap().to_string();
    assert!(text.ends_with("it held [9] as well"), "{text}");
}

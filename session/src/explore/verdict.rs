//! Judgement of a history (the operations of a branch's clients, with their results): its counts and its findings.

use everett_explorer::property::builtin;
use everett_explorer::run::HistoryCount;
use everett_linearizability::{self as history, Budget, Reader, Report, ViolationGroup};

use super::abstractions::Abstractions;
use super::witness::Witness;

/// Maximum number of steps of the searches for a valid order of the operations (a linearization), per branch.
const HISTORY_STEPS_MAX: u64 = 2_000_000;

/// Judges the history that a witness (the observer of one branch) has so far. Adds the findings to the witness and
/// returns the counts.
pub fn judge_history(abstractions: &Abstractions, witness: &mut Witness<'_>) -> Option<HistoryCount> {
    let spec = abstractions.world.workload.history.clone()?;
    let mut reader = Reader::new(spec);
    let chain = witness.chain();
    chain.lines().for_each(|line| reader.push(line));
    chain.dropped().into_iter().for_each(|line| reader.cut(line));
    let (history, problems) = reader.finish();
    let budget = Budget { steps: HISTORY_STEPS_MAX, ..Budget::default() };
    let report = history::check(&history, budget);
    let last_ns = witness.chain().lines().last().map_or(0, |line| line.vtime_ns);
    let count = HistoryCount {
        operations: report.operations as u64,
        acknowledged: report.acknowledged as u64,
        failed: report.failed as u64,
        problems: report.problems,
        unknown: report.unknown().count() as u64,
    };
    for HistoryFinding { property, cause, text } in wrong(report) {
        witness.history_hit(last_ns, property, &cause, &text);
    }
    if let Some(problem) = problems.first.first() {
        let text = format!("a line of the history cannot be used: {}", problem.what);
        witness.history_hit(problem.vtime_ns, builtin::BAD_HISTORY, &problem.what.cause(), &text);
    }
    Some(count)
}

/// Violation of a property in a history.
struct HistoryFinding {
    property: &'static str,
    cause: String,
    text: String,
}

/// Returns one finding for each cause in a report. A history with a lost write also violates linearizability, but a
/// report lists only the lost write for its key.
fn wrong(report: Report) -> Vec<HistoryFinding> {
    let losses = report.losses.into_iter().map(|ViolationGroup { cause, first, count }| {
        let more = match count {
            0 | 1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        HistoryFinding { property: builtin::LOST_WRITE, cause, text: format!("{first}{more}") }
    });
    let violations = report.causes.into_iter().map(|ViolationGroup { cause, first, .. }| {
        let text = first.to_string().trim_end_matches([':', ';']).to_owned();
        HistoryFinding { property: builtin::LINEARIZABILITY, cause, text }
    });
    losses.chain(violations).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use everett_explorer::plan::Plan;

    use super::*;
    use crate::explore::witness::Inherited;
    use crate::world::event::{Event, What};
    use everett_world_file as world_file;

    /// Returns properties and signatures of the findings in a history. `lines` has one operation per line: `process
    /// type f value`.
    fn found(model: &str, lines: &str) -> Vec<(String, String)> {
        let world = format!("[[node]]\nname = \"a\"\n[workload.history]\nmodel = \"{model}\"\n");
        let world = world_file::parse(&world, Path::new("w.toml")).unwrap();
        let (abstractions, plan) = (Abstractions::new(&world).unwrap(), Plan::default());
        let mut witness = Witness::new(&abstractions, &plan, &Inherited::new(&abstractions)).unwrap();
        for (line, vtime_ns) in lines.lines().map(str::trim).zip(1..) {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let value = words.get(3).map_or(String::new(), |value| format!(",\"value\":{value}"));
            let text = match words[..] {
                [process, kind, f, ..] => {
                    format!("{{\"process\":{process},\"type\":\"{kind}\",\"f\":\"{f}\"{value}}}")
                }
                _ => line.to_owned(),
            };
            let what = What::History { text, truncated: false };
            witness.hear(&Event { vtime_ns, node: "a".to_owned(), what });
        }
        judge_history(&abstractions, &mut witness);
        witness
            .found()
            .iter()
            .map(|found| (found.hit.property.clone(), found.hit.signature.clone()))
            .collect()
    }

    /// Returns the findings after successful additions of these numbers and a read with the result `members`.
    fn read(process: &str, adds: std::ops::Range<u32>, members: &str) -> Vec<(String, String)> {
        let adds = adds.map(|n| format!("{process} invoke add {n}\n{process} ok add\n"));
        found("set", &(adds.collect::<String>() + &format!("9 invoke read\n9 ok read {members}")))
    }

    #[test]
    fn one_loss_has_one_signature_whatever_was_read() {
        let first = read("1", 0..5, "[]");
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].0, "lost write");
        for (process, adds, members) in [
            ("1", 0..5, "[1]"),
            ("1", 0..5, "[0,2,3,4]"),
            ("\"x\"", 0..50, "[44,45,46]"),
            ("7", 0..3, "[\"a text\",{\"an\":\"object\"}]"),
        ] {
            assert_eq!(read(process, adds, members), first, "{members}");
        }
    }

    /// A lost write of one key hides neither another lost write nor a violation of another key.
    #[test]
    fn each_cause_is_a_finding() {
        let lines = "1 invoke enqueue 1\n1 ok enqueue\n1 invoke enqueue 2\n1 ok enqueue\n9 invoke dequeue\n9 ok dequeue 1\n\
                     9 invoke dequeue\n9 ok dequeue 1\n9 invoke dequeue\n9 ok dequeue null";
        let keyed = |key: &str, process: &str, kind: &str, value: &str| {
            format!(
                "{{\"key\":\"{key}\",\"process\":{process},\"type\":\"{kind}\",\"f\":\"{}\"{value}}}\n",
                if value.is_empty() || process == "1" { "enqueue" } else { "dequeue" }
            )
        };
        let properties = |found: Vec<(String, String)>| {
            found.into_iter().map(|(property, _)| property).collect::<Vec<_>>()
        };
        assert_eq!(properties(found("queue", lines)), ["lost write", "lost write"]);
        let mut keys = String::new();
        for (key, taken) in [("lost", "null"), ("order", "2")] {
            for element in ["1", "2"] {
                keys += &keyed(key, "1", "invoke", &format!(",\"value\":{element}"));
                keys += &keyed(key, "1", "ok", &format!(",\"value\":{element}"));
            }
            keys += &keyed(key, "9", "invoke", ",\"value\":null");
            keys += &keyed(key, "9", "ok", &format!(",\"value\":{taken}"));
        }
        assert_eq!(properties(found("queue", &keys)), ["lost write", "linearizability"]);
    }

    #[test]
    fn lines_that_were_cut_off_are_one_finding() {
        let first = found("set", "{\"process\"");
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].0, "bad history");
        assert_eq!(found("set", "{\"process\":1,"), first);
        assert_eq!(found("set", "{\"process\":1,\"type\":\"inv"), first);
    }
}

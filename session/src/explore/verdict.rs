//! What is made of a history: how much there is of it, and what of it is wrong.

use everett_explorer::history::{self, Budget, Gist, Reader, Report};
use everett_explorer::property::builtin;
use everett_explorer::run::HistoryCount;

use super::lens::Lens;
use super::witness::Witness;

/// Steps of search that are taken for the histories of one branch.
const HISTORY_STEPS_MAX: u64 = 2_000_000;

/// Judge the history that a witness has heard so far, which is told what is wrong with it.
pub fn judge_history(lens: &Lens, witness: &mut Witness<'_>) -> Option<HistoryCount> {
    let spec = lens.world.workload.history.clone()?;
    let mut reader = Reader::new(spec);
    witness.tale().lines().for_each(|line| reader.push(line));
    let (history, problems) = reader.finish();
    let budget = Budget { steps: HISTORY_STEPS_MAX, ..Budget::default() };
    let report = history::check(&history, budget);
    let last_ns = witness.tale().lines().last().map_or(0, |line| line.vtime_ns);
    if let Some(Told { property, cause, text }) = wrong(&report) {
        witness.history_hit(last_ns, property, &cause, &text);
    }
    if let Some(problem) = problems.first.first() {
        let text = format!("a line of the history cannot be used: {}", problem.what);
        witness.history_hit(problem.vtime_ns, builtin::BAD_HISTORY, &problem.what.cause(), &text);
    }
    Some(HistoryCount {
        operations: report.operations as u64,
        acknowledged: report.acknowledged as u64,
        failed: report.failed as u64,
        problems: report.problems,
        unknown: report.unknown().count() as u64,
    })
}

/// What is told of a history.
struct Told {
    property: &'static str,
    cause: String,
    text: String,
}

/// What of a report is wrong. A write that is gone makes a history that is not linearizable: it is told once.
fn wrong(report: &Report) -> Option<Told> {
    if let Some(Gist { cause, first: lost }) = report.gist_of_losses() {
        let more = match report.lost_count {
            0 | 1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        return Some(Told { property: builtin::LOST_WRITE, cause, text: format!("{lost}{more}") });
    }
    let Gist { cause, first } = report.gist_of_violations()?;
    let text = first.to_string().trim_end_matches([':', ';']).to_owned();
    Some(Told { property: builtin::LINEARIZABILITY, cause, text })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use everett_explorer::plan::Plan;

    use super::*;
    use crate::event::{Event, What};
    use crate::explore::witness::Memory;
    use crate::world_file;

    /// What is found in a history of this model, of lines `process type f value`: properties and signatures.
    fn found(model: &str, lines: &str) -> Vec<(String, String)> {
        let world = format!("[[node]]\nname = \"a\"\n[workload.history]\nmodel = \"{model}\"\n");
        let world = world_file::parse(&world, Path::new("w.toml")).unwrap();
        let (lens, plan) = (Lens::new(&world).unwrap(), Plan::default());
        let mut witness = Witness::new(&lens, &plan, &Memory::new(&lens)).unwrap();
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
        judge_history(&lens, &mut witness);
        witness
            .found()
            .iter()
            .map(|found| (found.hit.property.clone(), found.hit.signature.clone()))
            .collect()
    }

    /// Additions of numbers, all acknowledged, and a read of these members.
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

    #[test]
    fn lines_that_were_cut_off_are_one_finding() {
        let first = found("set", "{\"process\"");
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].0, "bad history");
        assert_eq!(found("set", "{\"process\":1,"), first);
        assert_eq!(found("set", "{\"process\":1,\"type\":\"inv"), first);
    }
}

//! What is made of a history: how much there is of it, and what of it is wrong.

use everett_explorer::history::{self, Budget, Reader, Report};
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
    if let Some((property, text)) = wrong(&report) {
        witness.history_hit(last_ns, property, &text);
    }
    if let Some(problem) = problems.first.first() {
        let text = format!("a line of the history cannot be used: {}", problem.what);
        witness.history_hit(problem.vtime_ns, builtin::BAD_HISTORY, &text);
    }
    Some(HistoryCount {
        operations: report.operations as u64,
        acknowledged: report.acknowledged as u64,
        failed: report.failed as u64,
        problems: report.problems,
        unknown: report.unknown().count() as u64,
    })
}

/// What of a report is wrong: which property, and in which words. A write that is gone makes a history that is not linearizable:
/// it is told once.
fn wrong(report: &Report) -> Option<(&'static str, String)> {
    if let Some(lost) = report.lost.first() {
        let more = match report.lost_count {
            0 | 1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        return Some((builtin::LOST_WRITE, format!("{lost}{more}")));
    }
    let first = report.violations().next()?.lines().into_iter().next()?;
    Some((builtin::LINEARIZABILITY, first.trim_end_matches([':', ';']).to_owned()))
}

//! The check of an operation history for lost writes and for linearizability.

use super::cause::Violations;
use super::error::short;
use super::evidence::{Evidence, Verdict};
use super::limits::{CACHE_BYTES_MAX, FOLLOWED_MAX, STEPS_MAX};
use super::lost::{self, Tally};
use super::minimise::Judge;
use super::partition;
use super::reader::History;
use super::report::{KeyReport, Report};
use super::search::Allowance;

/// Limits on the work of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Number of search steps for all parts of the history together. A part has the operations of one key, or of one
    /// element of a set. Each part gets an equal share of the steps that are left. Each of the first [`FOLLOWED_MAX`]
    /// violations is then traced to its first impossible completion, i.e. to the first result that no order of the
    /// operations explains. Tracing may take as many steps as the part's share, and these steps are not subtracted from
    /// the total.
    pub steps: u64,
    /// Memory for the visited configurations and for the choices not yet tried, in bytes. Only one search runs at a
    /// time.
    pub cache_bytes: u64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { steps: STEPS_MAX, cache_bytes: CACHE_BYTES_MAX }
    }
}

/// Checks a history for lost writes and for linearizability.
#[must_use]
pub fn check(history: &History, budget: Budget) -> Report {
    let kind = history.spec.kind();
    let by_key = partition::by_key(history);
    let parts: Vec<_> = by_key.iter().map(|operations| partition::parts(kind, operations)).collect();
    let mut parts_left: u64 = parts.iter().map(|parts| parts.len() as u64).sum();
    let mut steps_left = budget.steps;
    let lost = lost::find(history, &by_key);
    let (mut violations, mut causes) = (0, Violations::new());
    let mut keys = Vec::with_capacity(parts.len());
    for (number, (operations, parts)) in (0..).zip(by_key.iter().zip(&parts)) {
        let mut verdict = Verdict::Fine;
        for part in parts {
            let steps = steps_left / parts_left.max(1);
            parts_left = parts_left.saturating_sub(1);
            let allowance = Allowance { steps, cache_bytes: budget.cache_bytes };
            let judge = Judge { history, part, allowance, follow: violations < FOLLOWED_MAX };
            let (found, taken) = judge.verdict();
            steps_left = steps_left.saturating_sub(taken);
            if let Verdict::Violation(evidence) = &found {
                violations += 1;
                // If a write of the key is lost, the report already has that loss, which explains the violation.
                if lost.keys.binary_search(&number).is_err() {
                    causes.add(kind, evidence);
                }
            }
            verdict = worse(verdict, found);
        }
        let key = history.key(number).map(short);
        keys.push(KeyReport { key, operations: operations.len(), verdict });
    }
    let acknowledged = history.operations.iter().filter(|operation| operation.completed().is_some()).count();
    let failed = history.operations.iter().filter(|operation| operation.failed()).count();
    let Tally { lost, count: lost_count, groups, .. } = lost;
    Report {
        keys,
        lost,
        lost_count,
        losses: groups.all(),
        causes: causes.all(),
        operations: history.operations.len(),
        acknowledged,
        failed,
        problems: history.problems,
    }
}

/// Combines the verdicts on two parts of a key: returns the worse verdict, or the earlier of two violations.
fn worse(one: Verdict, other: Verdict) -> Verdict {
    match (one, other) {
        (Verdict::Violation(mut one), Verdict::Violation(mut other)) => {
            // The key's first impossible operation is known only if it is known for both parts.
            let earliest = one.earliest && other.earliest;
            (one.earliest, other.earliest) = (earliest, earliest);
            let end = |evidence: &Evidence| evidence.operation.completed.map(|moment| moment.line);
            Verdict::Violation(if end(&other) < end(&one) { other } else { one })
        }
        (Verdict::Violation(mut evidence), Verdict::Unknown { .. })
        | (Verdict::Unknown { .. }, Verdict::Violation(mut evidence)) => {
            // The part with an unknown verdict may have an earlier violation.
            evidence.earliest = false;
            Verdict::Violation(evidence)
        }
        (Verdict::Fine, other) => other,
        (one, _) => one,
    }
}

//! Verdicts on the SDK's assertions after an exploration.

use std::collections::BTreeMap;

use serde::Serialize;

use everett_explorer::coverage::{Coverage, Outcome, Point};
use everett_explorer::sdk::AssertionKind;

/// Assertion of a program, with its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Asserted {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: AssertionKind,
    /// Verdict.
    pub verdict: Verdict,
    /// Number of branches on whose path the condition was evaluated and held.
    pub held: u64,
    /// Number of branches on whose path the condition was evaluated and failed.
    pub failed: u64,
    /// Number of the first branch with an evaluation that decides the verdict, if there is one.
    pub first: Option<u64>,
}

/// Verdict on an assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The assertion was violated.
    Failed,
    /// Some branch should have reached the assertion, or should have fulfilled its condition, but no branch did.
    NeverReached,
    /// The assertion holds.
    Passed,
}

/// Returns the assertions that branches reported, ordered by name and kind.
#[must_use]
pub fn asserted(coverage: &Coverage) -> Vec<Asserted> {
    /// Number of branches in which an assertion had a certain outcome, and the number of the first of these branches.
    #[derive(Default, Clone, Copy)]
    struct Seen(u64, Option<u64>);
    let mut all: BTreeMap<(String, AssertionKind), [Seen; 2]> = BTreeMap::new();
    for (_, covered) in coverage.points() {
        let Point::Assertion { name, kind, outcome } = &*covered.point else { continue };
        let [held, failed] = all.entry((name.clone(), *kind)).or_default();
        let seen = Seen(covered.hits, Some(covered.first.choice));
        match outcome {
            Outcome::Registered => {}
            Outcome::Held => *held = seen,
            Outcome::Failed => *failed = seen,
        }
    }
    let of = |((name, kind), [held, failed]): ((String, AssertionKind), [Seen; 2])| {
        let violated = kind.forbids_false() && failed.0 > 0;
        let wanted = !matches!(kind, AssertionKind::AlwaysOrUnreachable | AssertionKind::Unreachable);
        let (verdict, first) = match (violated, wanted && held.0 == 0) {
            (true, _) => (Verdict::Failed, failed.1),
            (false, true) => (Verdict::NeverReached, None),
            (false, false) => (Verdict::Passed, held.1),
        };
        Asserted { name, kind, verdict, held: held.0, failed: failed.0, first }
    };
    all.into_iter().map(of).collect()
}

//! Results of all properties: failed, passed, never reached.

use std::collections::BTreeSet;

use crate::exploration::assertions::{Asserted, Verdict};
use everett_explorer::run::Cost;
use serde::Serialize;

use super::history::{Status, observed};
use super::limits::PATH_CHARS_MAX;
use super::unreached::{self, BUILT_IN, declared};
use super::{Run, Sources};
use crate::clip::clip;
use crate::findability::outlook;

/// Property with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Property {
    /// Name.
    pub name: String,
    /// Kind of the property: `built in`, `never`, `eventually`, `sometimes`, `probe` or `test command`. For an assertion of a
    /// program: `Always`, `AlwaysOrUnreachable`, `Sometimes`, `Reachable` or `Unreachable`.
    pub kind: String,
    /// Result.
    pub state: State,
    /// Reason why the property was never reached, or why it never succeeded although it was reached. Otherwise empty.
    pub why: String,
    /// Status of its failures compared with older runs. `None` without older runs, or if no run shows a failure.
    pub status: Option<Status>,
    /// Number of branches that violate the property. For a `sometimes` property, a test command, or an assertion that
    /// did not fail: number of branches on which it succeeded.
    pub branches: u64,
    /// Number of a branch on which the property holds. `None` if there is none, or if the property was never reached.
    pub example: Option<u64>,
    /// Number of the first branch on which the property fails, if there is one.
    pub counterexample: Option<u64>,
    /// Numbers of this run's findings of the property.
    pub findings: Vec<u32>,
}

/// Result of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A branch violates the property.
    Failed,
    /// A branch could have violated the property, but no branch did. For `sometimes` and test commands: it happened.
    Passed,
    /// No branch could have violated the property, e.g. because the checks never ran or the assertion was never
    /// reached. For `sometimes` and test commands: it never happened.
    NeverReached,
}

/// Returns all properties in this order: failed, never reached, failed in older runs, others.
pub(super) fn all(sources: &Sources<'_>, runs: &[Run<'_>]) -> Vec<Property> {
    let world = &sources.run.header.world;
    let mut names = declared(world);
    let assertions: BTreeSet<&str> = sources.report.assertions.iter().map(|one| one.name.as_str()).collect();
    // A finding may violate a property that the world file does not declare. This property is listed as built in.
    for name in runs.iter().flat_map(|run| run.merged.properties().keys()) {
        if names.iter().all(|(known, _)| known != name) && !assertions.contains(name.as_str()) {
            names.push((name.clone(), BUILT_IN.to_owned()));
        }
    }
    let mut all: Vec<Property> =
        names.into_iter().map(|(name, kind)| judged(sources, runs, name, kind)).collect();
    all.extend(sources.report.assertions.iter().map(|one| asserted(sources, runs, one)));
    all.extend(wanted(sources));
    all.sort_by_key(|property| match (property.state, property.status) {
        (State::Failed, _) => 0,
        (State::NeverReached, _) => 1,
        (State::Passed, Some(_)) => 2,
        (State::Passed, None) => 3,
    });
    all
}

/// Returns the result of a property that branches may violate.
fn judged(sources: &Sources<'_>, runs: &[Run<'_>], name: String, kind: String) -> Property {
    let merged = sources.run.merged;
    let seen = observed(runs, |merged| merged.properties().get(&name), Cost::cpu_ns);
    let ever = seen.iter().any(|run| run.hits > 0);
    let status = ever.then(|| Status::of(&seen, &outlook(&seen, &sources.terms))).flatten();
    let findings: Vec<u32> =
        merged.findings().iter().filter(|found| found.hit.property == name).map(|found| found.id).collect();
    let first =
        merged.findings().iter().filter(|found| found.hit.property == name).map(|found| found.first).min();
    let branches = merged.properties().get(&name).map_or(0, |tally| tally.branches);
    let of_checks = unreached::is_of_checks(&name, &kind);
    let why = if branches > 0 { "" } else { unreached::why(&name, &kind, merged).unwrap_or("") };
    let state = match (branches > 0, why.is_empty()) {
        (true, _) => State::Failed,
        (false, true) => State::Passed,
        (false, false) => State::NeverReached,
    };
    let holds = |checks_needed: bool| {
        let fits = |branch: &everett_explorer::run::branches::Branch| {
            !branch.broken
                && (!checks_needed || branch.checked)
                && !branch.findings.iter().any(|id| findings.contains(id))
        };
        sources.branches.all.iter().position(fits).map(|branch| branch as u64)
    };
    // Prefers a branch after which the checks ran, because Everett evaluates most properties when it runs the checks.
    let example = match state {
        State::NeverReached => None,
        _ => holds(true).or_else(|| if of_checks { None } else { holds(false) }),
    };
    let name = clip(&name, PATH_CHARS_MAX);
    Property {
        name,
        kind,
        state,
        why: why.to_owned(),
        status,
        branches,
        example,
        counterexample: first,
        findings,
    }
}

/// Returns an assertion of a program as a property.
fn asserted(sources: &Sources<'_>, runs: &[Run<'_>], one: &Asserted) -> Property {
    let judged = judged(sources, runs, one.name.clone(), one.kind.name().to_owned());
    let (state, why) = match one.verdict {
        Verdict::Failed => (State::Failed, String::new()),
        Verdict::Passed if one.held == 0 => (State::Passed, "it was never reached".to_owned()),
        Verdict::Passed => (State::Passed, String::new()),
        Verdict::NeverReached if one.failed == 0 => (State::NeverReached, "it was never reached".to_owned()),
        Verdict::NeverReached => {
            (State::NeverReached, "it was reached, and its condition never held".to_owned())
        }
    };
    let failed = state == State::Failed;
    Property {
        state,
        why,
        branches: if failed { one.failed } else { one.held },
        // For a violated assertion, `first` is a branch that violates it.
        example: one.first.filter(|_| !failed),
        counterexample: one.first.filter(|_| failed),
        findings: if failed { judged.findings } else { Vec::new() },
        ..judged
    }
}

/// Returns properties that should happen: `sometimes` properties, and test commands, which should succeed.
fn wanted(sources: &Sources<'_>) -> Vec<Property> {
    let report = sources.report;
    let of = |name: &str, kind: &str, why: String, branches: u64, first: Option<u64>| Property {
        name: clip(name, PATH_CHARS_MAX),
        kind: kind.to_owned(),
        state: if branches > 0 { State::Passed } else { State::NeverReached },
        why,
        status: None,
        branches,
        example: first,
        counterexample: None,
        findings: Vec::new(),
    };
    let seen = report.sometimes.iter();
    let seen = seen.map(|s| of(&s.name, "sometimes", String::new(), s.branches, Some(s.first)));
    let never =
        report.never.iter().map(|name| of(name, "sometimes", "it was never seen".to_owned(), 0, None));
    let commands = report.commands.iter().map(|command| {
        let why = match command {
            _ if command.branches > 0 => String::new(),
            _ if command.is_unused() => "it was never started".to_owned(),
            _ => command.counts_told(),
        };
        of(&command.name, "test command", why, command.branches, command.first)
    });
    seen.chain(never).chain(commands).collect()
}

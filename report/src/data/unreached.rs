//! Properties that no branch was able to violate, because no branch had the checks or histories that they need, and
//! assertions and test commands that no branch reached.

use std::collections::BTreeSet;

use crate::exploration::TestCommand;
use crate::exploration::assertions::{Verdict, asserted};
use everett_explorer::probe::recorded;
use everett_explorer::property::builtin;
use everett_explorer::run::{Header, Merged};
use serde_json::Value;

/// Kind of the properties that every world has.
pub(super) const BUILT_IN: &str = "built in";
/// Kind of the properties that only hits of probes can satisfy or violate.
const PROBE: &str = "probe";
/// Kind of the properties that a hit of a probe violates.
const PROBE_NEVER: &str = "never";
/// Properties that only histories of operations can violate.
const OF_HISTORIES: [&str; 3] = [builtin::LINEARIZABILITY, builtin::LOST_WRITE, builtin::BAD_HISTORY];
/// Properties that only checks can violate.
const OF_CHECKS: [&str; 2] = [builtin::FAILED_CHECK, builtin::NOT_CALM];

/// Returns the properties that branches can violate, each with its kind: `built in`, `never`, `eventually` or `probe`. `world`
/// is the world file as the run directory records it.
pub(super) fn declared(world: &Value) -> Vec<(String, String)> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let ignored: BTreeSet<&str> = world
        .pointer("/explore/ignore")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut names: Vec<(String, String)> = builtin::names()
        .filter(|name| !ignored.contains(name))
        .map(|name| (name.to_owned(), BUILT_IN.to_owned()))
        .collect();
    for declared in world.get("property").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = text(declared, "name") else { continue };
        let kind =
            ["never", "eventually"].into_iter().find(|kind| declared.get(kind).is_some_and(|v| !v.is_null()));
        if let Some(kind) = kind {
            names.push((name, kind.to_owned()));
        }
    }
    let probes = recorded(world).filter(|(_, probe)| probe.is_property);
    names.extend(probes.map(|(name, probe)| {
        let kind = if probe.needs_hit { PROBE } else { PROBE_NEVER };
        (name.to_owned(), kind.to_owned())
    }));
    names
}

/// True if only checks can violate this property.
pub(super) fn is_of_checks(name: &str, origin: &str) -> bool {
    origin == "eventually" || origin == BUILT_IN && OF_CHECKS.contains(&name)
}

/// Returns the reason why no branch was able to violate this property. `None` if a branch was able to violate it.
pub(super) fn why(name: &str, origin: &str, merged: &Merged) -> Option<&'static str> {
    let totals = merged.totals();
    match () {
        () if merged.branches() == 0 => Some("no branch has run"),
        () if origin == BUILT_IN && OF_HISTORIES.contains(&name) && totals.histories == 0 => {
            Some("no branch had a history of operations")
        }
        () if origin == PROBE && !merged.sometimes().contains_key(name) => {
            Some("no branch reached its place")
        }
        () if is_of_checks(name, origin) && totals.checked == 0 => Some("no branch had checks"),
        () => None,
    }
}

/// Returns the names of all properties, assertions and test commands that were never reached, each with the reason. A
/// property is reached if a branch was able to violate it, and a `sometimes` property if a branch showed it. A test
/// command is reached if it succeeded. `sometimes` lists the declared `sometimes` properties. The time of a call grows
/// with the number of coverage points.
#[must_use]
pub fn unreached(header: &Header, merged: &Merged, sometimes: &[String]) -> Vec<(String, String)> {
    let judged = declared(&header.world).into_iter().filter_map(|(name, origin)| {
        let why = why(&name, &origin, merged).filter(|_| !merged.properties().contains_key(&name))?;
        Some((name, why.to_owned()))
    });
    let assertions = asserted(merged.coverage()).into_iter();
    let assertions = assertions.filter(|one| one.verdict == Verdict::NeverReached).map(|one| {
        let why = match one.failed {
            0 => "it was never reached",
            _ => "it was reached, and its condition never held",
        };
        (one.name, why.to_owned())
    });
    let unseen = sometimes.iter().filter(|name| !merged.sometimes().contains_key(*name));
    let unseen = unseen.map(|name| (name.clone(), "it was never seen".to_owned()));
    let commands = TestCommand::all(merged).into_iter().filter(|command| command.branches == 0);
    let commands = commands.map(|command| {
        let why = match command.is_unused() {
            true => "it was never started".to_owned(),
            false => command.counts_told(),
        };
        (command.name, why)
    });
    judged.chain(assertions).chain(unseen).chain(commands).collect()
}

//! What was not covered although it could have been: where to look next.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::abstraction::Abstraction;
use super::cover::Coverage;
use super::limits::GAPS_MAX;
use super::point::Point;

/// The gaps. Of each sort the first are listed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Gaps {
    /// Faults that never began in a phase that was seen: the phases that most branches saw first, then by name.
    pub faults: Listed<FaultGap>,
    /// Orders of which only the reverse was seen: those that most branches saw reversed first, then by name.
    pub orders: Listed<OrderGap>,
    /// Declared values that no variable had, in the order of rules.
    pub values: Listed<ValueGap>,
}

/// The first of many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed<T> {
    /// The first.
    pub first: Vec<T>,
    /// How many there are.
    pub count: u64,
}

/// A fault that never began in a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultGap {
    /// The fault's kind.
    pub fault: String,
    /// The phase.
    pub phase: String,
    /// How many branches saw a node come into it.
    pub seen: u64,
}

/// An order that was not seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OrderGap {
    /// What never came before the other.
    pub first: String,
    /// The other.
    pub then: String,
    /// On another node.
    pub across: bool,
    /// How many branches saw the reverse.
    pub reversed: u64,
}

/// A value that was not seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueGap {
    /// The rule that declares it.
    pub rule: String,
    /// The variable.
    pub variable: String,
    /// The value.
    pub value: String,
}

impl<T> Default for Listed<T> {
    fn default() -> Listed<T> {
        Listed { first: Vec::new(), count: 0 }
    }
}

impl<T> Listed<T> {
    fn of(all: impl Iterator<Item = T>) -> Listed<T> {
        let mut listed = Listed::default();
        for item in all {
            listed.count += 1;
            if listed.first.len() < GAPS_MAX {
                listed.first.push(item);
            }
        }
        listed
    }
}

impl Gaps {
    /// The gaps in what was covered, with these kinds of faults enabled.
    #[must_use]
    pub fn of(coverage: &Coverage, abstraction: &Abstraction, enabled: &BTreeSet<String>) -> Gaps {
        let mut phases = Vec::new();
        let mut cells = BTreeSet::new();
        let mut orders = BTreeMap::new();
        let mut values = BTreeSet::new();
        let points = coverage.points();
        for (_, covered) in &points {
            match &*covered.point {
                Point::Phase { phase } => phases.push((phase.as_str(), covered.hits)),
                Point::Fault { fault, phase } => {
                    cells.insert((fault.as_str(), phase.as_str()));
                }
                Point::Order { first, then, across } => {
                    orders.insert((first.as_str(), then.as_str(), *across), covered.hits);
                }
                Point::Value { variable, value } => {
                    values.insert((variable.as_str(), value.clone()));
                }
                Point::State { .. } | Point::FaultPair { .. } => {}
            }
        }
        phases.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        Gaps {
            faults: faults(&phases, &cells, enabled),
            orders: one_way(&orders),
            values: unseen(abstraction, &values),
        }
    }
}

fn faults(
    phases: &[(&str, u64)],
    cells: &BTreeSet<(&str, &str)>,
    enabled: &BTreeSet<String>,
) -> Listed<FaultGap> {
    let all = phases.iter().flat_map(|(phase, seen)| enabled.iter().map(move |fault| (fault, *phase, *seen)));
    let empty = all.filter(|(fault, phase, _)| !cells.contains(&(fault.as_str(), *phase)));
    Listed::of(empty.map(|(fault, phase, seen)| FaultGap {
        fault: fault.clone(),
        phase: phase.to_owned(),
        seen,
    }))
}

fn one_way(orders: &BTreeMap<(&str, &str, bool), u64>) -> Listed<OrderGap> {
    let mut gaps: Vec<OrderGap> = orders
        .iter()
        .filter(|((first, then, across), _)| !orders.contains_key(&(*then, *first, *across)))
        .map(|((first, then, across), hits)| OrderGap {
            first: (*then).to_owned(),
            then: (*first).to_owned(),
            across: *across,
            reversed: *hits,
        })
        .collect();
    // Stable: those with as many stay in the order of names.
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.reversed));
    Listed::of(gaps.into_iter())
}

/// Values are compared as they were entered: with names of nodes masked.
fn unseen(abstraction: &Abstraction, values: &BTreeSet<(&str, String)>) -> Listed<ValueGap> {
    let world = abstraction.world();
    let declared = abstraction.rules().iter().flat_map(|rule| {
        let values =
            rule.values().iter().flat_map(|(variable, values)| values.iter().map(move |v| (variable, v)));
        values.map(move |(variable, value)| (rule.name(), variable, value))
    });
    let gaps =
        declared.filter(|(_, variable, value)| !values.contains(&(variable.as_str(), world.mask(value))));
    Listed::of(gaps.map(|(rule, variable, value)| ValueGap {
        rule: rule.to_owned(),
        variable: variable.clone(),
        value: value.clone(),
    }))
}

//! Gaps: coverage points that no branch reached, although they seem reachable. They suggest what to explore further.
//! Gaps are of three kinds: faults in a phase (a state of one node), orders of events, and values of variables. Rules
//! in the world file say how log lines set these variables.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::abstraction::Abstraction;
use super::cover::Coverage;
use super::limits::GAPS_MAX;
use super::point::Point;

/// All gaps, as three lists.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Gaps {
    /// Faults that never began in some reached phase. Sorted by the number of branches that reached the phase, highest
    /// first, then by name.
    pub faults: Listed<FaultGap>,
    /// Orders of events that never occurred, although the reverse order did. Sorted by the number of branches with the
    /// reverse order, highest first, then by name.
    pub orders: Listed<OrderGap>,
    /// Declared values that their variables never had, in the order of the rules that declare them.
    pub values: Listed<ValueGap>,
}

/// First items of a list, with the length of the whole list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed<T> {
    /// First items, at most [`GAPS_MAX`].
    pub first: Vec<T>,
    /// Number of all items.
    pub count: u64,
}

/// Fault that never began in a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultGap {
    /// Kind of the fault.
    pub fault: String,
    /// Phase in which the fault never began.
    pub phase: String,
    /// Number of branches in which a node entered the phase.
    pub seen: u64,
}

/// Order of two event types that never occurred, although the reverse order did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OrderGap {
    /// Event type that never occurred before `then`.
    pub first: String,
    /// Event type that occurred before `first`, but never after it.
    pub then: String,
    /// True if the two events happen on different nodes, false if they happen on one node.
    pub across: bool,
    /// Number of branches with the reverse order.
    pub reversed: u64,
}

/// Declared value that its variable never had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueGap {
    /// Rule that declares the value.
    pub rule: String,
    /// Variable that never had the value.
    pub variable: String,
    /// The value, as declared.
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
    /// Returns the gaps in `coverage`. `enabled` lists the kinds of faults that the exploration may inject.
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
                Point::State { .. }
                | Point::FaultPair { .. }
                | Point::Assertion { .. }
                | Point::Guidance { .. }
                | Point::Edge { .. } => {}
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
    // The sort is stable, so gaps with equal counts stay sorted by name.
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.reversed));
    Listed::of(gaps.into_iter())
}

/// Returns the declared values that never occurred. In the values of coverage points, a placeholder replaces the names
/// of nodes, so the same replacement is made in the declared values before the comparison.
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

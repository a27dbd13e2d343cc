//! Assertions, guidance and code edges that programs report through the SDK.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::point::{Outcome, Point};
use crate::sdk::limits::{ASSERTIONS_MAX, GUIDANCES_MAX};
use crate::sdk::{AssertionKind, Guidance, Value};

/// Reports of a timeline's programs so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Reported {
    /// Outcomes of each assertion.
    assertions: BTreeMap<(String, AssertionKind), Vec<Outcome>>,
    /// Best number of each guidance, as a rank: the higher the rank, the better. A guidance is a value that programs
    /// report to steer the explorer.
    best: BTreeMap<String, i64>,
}

impl Reported {
    /// Returns the coverage points of all assertions of the timeline so far: one point for each outcome of an
    /// assertion. A branch also reaches the points of its ancestors, because a program may register and evaluate an
    /// assertion only once, before the fork.
    pub(super) fn points(&self) -> impl Iterator<Item = Point> {
        self.assertions.iter().flat_map(|((name, kind), outcomes)| {
            let point =
                |outcome: &Outcome| Point::Assertion { name: name.clone(), kind: *kind, outcome: *outcome };
            outcomes.iter().map(point)
        })
    }

    /// Records an outcome of an assertion. Returns its point if the outcome is new on this timeline. Returns `None` if
    /// it is not, or if the timeline has too many assertions.
    pub(super) fn assertion(&mut self, name: &str, kind: AssertionKind, outcome: Outcome) -> Option<Point> {
        let full = self.assertions.len() >= ASSERTIONS_MAX;
        let key = (name.to_owned(), kind);
        if full && !self.assertions.contains_key(&key) {
            return None;
        }
        let outcomes = self.assertions.entry(key).or_default();
        if outcomes.contains(&outcome) {
            return None;
        }
        outcomes.push(outcome);
        Some(Point::Assertion { name: name.to_owned(), kind, outcome })
    }

    /// Records a value of a guidance, and returns its point. Returns `None` for a number that is not better than an
    /// earlier number of this timeline, and for the first number of a guidance if the timeline has too many guidances.
    pub(super) fn guidance(&mut self, guidance: &Guidance) -> Option<Point> {
        let name = guidance.name.clone();
        match &guidance.value {
            Value::Other(value) => Some(Point::Guidance { name, value: value.clone(), rank: None }),
            Value::Number { rank, text } => {
                let full = self.best.len() >= GUIDANCES_MAX;
                match self.best.get_mut(&name) {
                    Some(best) if *best >= *rank => return None,
                    Some(best) => *best = *rank,
                    None if full => return None,
                    None => {
                        self.best.insert(name.clone(), *rank);
                    }
                }
                Some(Point::Guidance { name, value: text.clone(), rank: Some(*rank) })
            }
        }
    }
}

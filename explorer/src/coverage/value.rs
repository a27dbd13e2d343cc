//! The value of a state variable, which is a part of an abstract state. Rules capture the value from log lines. The
//! names of nodes in the value can be replaced by placeholders. Two states that differ only in the order of
//! interchangeable nodes then have the same text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::limits::VALUE_BYTES_MAX;
use super::vocabulary::OTHER;
use super::world::{Piece, World};
use crate::text::clip;

/// Value of a state variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Value {
    /// Text in which nodes are referred to by index instead of by name.
    Text(Vec<Part>),
    /// Number. Only its rank among the numbers that the nodes have in this variable is part of the state.
    Ranked(u64),
}

/// Part of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Part {
    Text(String),
    Node(u16),
}

impl Value {
    /// Clips a captured text and splits it into names of nodes and other text.
    pub(super) fn text(text: &str, world: &World) -> Value {
        let part = |piece| match piece {
            Piece::Text(text) => Part::Text(text.to_owned()),
            Piece::Node(node) => Part::Node(node),
        };
        Value::Text(world.pieces(&clip(text, VALUE_BYTES_MAX)).into_iter().map(part).collect())
    }

    /// Returns the value that replaces all values beyond the maximum number of distinct values.
    pub(super) fn other() -> Value {
        Value::Text(vec![Part::Text(OTHER.to_owned())])
    }

    /// Prints the value as text. `names` returns the names of nodes.
    pub(super) fn write(&self, variable: &str, names: &dyn Fn(u16) -> String, ranks: &Ranks) -> String {
        let part = |part: &Part| match part {
            // `^` marks a rank, or a placeholder for the name of an interchangeable node. A `^` in a captured text is
            // doubled, so that no text looks like a mark.
            Part::Text(text) => text.replace('^', "^^"),
            Part::Node(node) => names(*node),
        };
        match self {
            Value::Text(parts) => parts.iter().map(part).collect(),
            Value::Ranked(number) => format!("^{}", ranks.of(variable, *number)),
        }
    }

    /// Returns the value as text for people: with the names of nodes, and with the number itself instead of its rank.
    pub(super) fn show(&self, names: &dyn Fn(u16) -> String) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Node(node) => names(*node),
        };
        match self {
            Value::Text(parts) => parts.iter().map(part).collect(),
            Value::Ranked(number) => number.to_string(),
        }
    }

    /// Returns the nodes that occur in the value.
    pub(super) fn nodes(&self) -> impl Iterator<Item = u16> {
        let parts = match self {
            Value::Text(parts) => parts.as_slice(),
            Value::Ranked(_) => &[],
        };
        parts.iter().filter_map(|part| match part {
            Part::Node(node) => Some(*node),
            Part::Text(_) => None,
        })
    }
}

/// For each variable, the distinct numbers that the nodes have in it, in ascending order.
#[derive(Debug, Default)]
pub(super) struct Ranks {
    numbers: BTreeMap<String, Vec<u64>>,
}

impl Ranks {
    /// Collects the numbers among these values.
    pub(super) fn among<'v>(values: impl Iterator<Item = (&'v str, &'v Value)>) -> Ranks {
        let mut ranks = Ranks::default();
        for (variable, value) in values {
            if let Value::Ranked(number) = value {
                let numbers = ranks.numbers.entry(variable.to_owned()).or_default();
                if let Err(place) = numbers.binary_search(number) {
                    numbers.insert(place, *number);
                }
            }
        }
        ranks
    }

    /// Returns how many distinct numbers of the variable are less than `number`.
    fn of(&self, variable: &str, number: u64) -> usize {
        self.numbers.get(variable).map_or(0, |numbers| numbers.partition_point(|other| *other < number))
    }
}

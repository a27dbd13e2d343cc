//! Which directions of which links.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Some nodes by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Group {
    /// All of the world.
    All,
    /// These.
    Nodes(BTreeSet<String>),
}

impl Group {
    /// Whether a node is in it.
    #[must_use]
    pub fn contains(&self, node: &str) -> bool {
        match self {
            Group::All => true,
            Group::Nodes(nodes) => nodes.contains(node),
        }
    }
}

/// Frames from one group of nodes to another, and back if both ways are meant. Frames inside of one group are among them
/// when a node is in both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// Who sends.
    pub from: Group,
    /// Who receives.
    pub to: Group,
    /// The other direction, too.
    pub both_ways: bool,
}

impl Links {
    /// All of them.
    #[must_use]
    pub fn all() -> Links {
        Links { from: Group::All, to: Group::All, both_ways: true }
    }

    /// Whether frames from `sender` to `receiver` are meant.
    #[must_use]
    pub fn contains(&self, sender: &str, receiver: &str) -> bool {
        self.from.contains(sender) && self.to.contains(receiver)
            || self.both_ways && self.from.contains(receiver) && self.to.contains(sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions() {
        let nodes = |names: &[&str]| Group::Nodes(names.iter().map(|n| (*n).to_owned()).collect());
        let one_way = Links { from: nodes(&["a"]), to: nodes(&["b", "c"]), both_ways: false };
        assert!(one_way.contains("a", "c") && !one_way.contains("c", "a") && !one_way.contains("b", "c"));
        let from_all = Links { from: Group::All, to: nodes(&["b"]), both_ways: true };
        assert!(from_all.contains("x", "b") && from_all.contains("b", "x") && !from_all.contains("x", "y"));
        assert!(Links::all().contains("x", "y"));
    }
}

//! Sets of directed links between nodes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Set of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Group {
    /// All nodes of the world.
    All,
    /// The nodes with these names.
    Nodes(BTreeSet<String>),
}

impl Group {
    /// True if the node is in the group.
    #[must_use]
    pub fn contains(&self, node: &str) -> bool {
        match self {
            Group::All => true,
            Group::Nodes(nodes) => nodes.contains(node),
        }
    }
}

/// Directed links from each node of `from` to each node of `to`. If `both_ways` is true, also the links in the reverse
/// direction. The groups may overlap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// Sending nodes.
    pub from: Group,
    /// Receiving nodes.
    pub to: Group,
    /// True if the reverse direction is included.
    pub both_ways: bool,
}

impl Links {
    /// Returns all links, in both directions.
    #[must_use]
    pub fn all() -> Links {
        Links { from: Group::All, to: Group::All, both_ways: true }
    }

    /// True if the set has the link from `sender` to `receiver`.
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

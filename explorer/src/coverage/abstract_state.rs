//! The state of a whole world as coverage tracks it: its nodes, the active faults, and global variables. The rules of a
//! world file set variables from log lines. A global variable belongs to the whole world instead of one node.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::limits::{PHASE_BYTES_MAX, STATE_BYTES_MAX};
use super::node::{NodeState, Set};
use super::symmetry;
use super::value::{Ranks, Value};
use super::world::World;
use crate::text::{clip, quoted};

/// State of a world as coverage tracks it. The nodes are in the order of the world.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct WorldState {
    pub(super) nodes: Vec<NodeState>,
    pub(super) globals: BTreeMap<String, Set>,
}

impl WorldState {
    /// Returns the state of a world before any event.
    pub(super) fn new(nodes: usize) -> WorldState {
        WorldState { nodes: vec![NodeState::default(); nodes], globals: BTreeMap::new() }
    }

    /// Returns the phase of each node. A phase is the text of a node's state. In this text the node itself is called
    /// `self`, and every other node is called `other`.
    pub(super) fn phases(&self) -> Vec<String> {
        let ranks = self.ranks();
        let phase = |(index, node): (u16, &NodeState)| {
            let name = |other: u16| if other == index { "self" } else { "other" }.to_owned();
            clip(&node.write(&name, &ranks), PHASE_BYTES_MAX)
        };
        (0u16..).zip(&self.nodes).map(phase).collect()
    }

    /// Returns the state as canonical text, i.e. as the same text for all states that differ only in the order of
    /// interchangeable nodes.
    pub(super) fn canonical(&self, world: &World) -> String {
        let ranks = self.ranks();
        let keys: Vec<String> = (0u16..)
            .zip(&self.nodes)
            .map(|(index, node)| node.write(&|other| symmetry::invariant_name(world, index, other), &ranks))
            .collect();
        let named: BTreeSet<u16> = self.values().flat_map(|(_, value)| value.nodes()).collect();
        let text = symmetry::least(world, &keys, &named, |slots| self.write(world, &ranks, slots));
        clip(&text, STATE_BYTES_MAX)
    }

    /// Prints the state. `slots` contains, for each node, the node's slot, i.e. its position in the text.
    fn write(&self, world: &World, ranks: &Ranks, slots: &[u16]) -> String {
        let slot = |node: u16| slots.get(usize::from(node)).copied().unwrap_or(node);
        let name = |node: u16| symmetry::slot_name(world, slot(node));
        let mut nodes: Vec<(u16, &NodeState)> =
            (0u16..).zip(&self.nodes).map(|(index, node)| (slot(index), node)).collect();
        nodes.sort_by_key(|(slot, _)| *slot);
        let mut text = String::new();
        for (slot, node) in nodes {
            text +=
                &format!("{}{{{}}} ", quoted(&symmetry::slot_name(world, slot)), node.write(&name, ranks));
        }
        let kinds: BTreeSet<&str> = self.nodes.iter().flat_map(NodeState::faults).collect();
        let kinds: Vec<String> = kinds.into_iter().map(quoted).collect();
        text += &format!("faults[{}]", kinds.join(", "));
        for (variable, set) in &self.globals {
            text += &format!(" {variable}={}", quoted(&set.value.write(variable, &name, ranks)));
        }
        text
    }

    fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        let globals = self.globals.iter().map(|(name, set)| (name.as_str(), &set.value));
        self.nodes.iter().flat_map(NodeState::values).chain(globals)
    }

    fn ranks(&self) -> Ranks {
        Ranks::among(self.nodes.iter().flat_map(NodeState::values))
    }
}

//! What a world has that a plan can name.

use std::collections::{BTreeMap, BTreeSet};

use crate::suggest;

use super::problem::{Problem, quoted, some_of};

/// What one node has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeNames {
    /// How many data disks.
    pub disks: u32,
    /// Its units: the services that the agent starts.
    pub units: BTreeSet<String>,
}

/// The nodes of a world and what each has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    nodes: BTreeMap<String, NodeNames>,
}

impl FromIterator<(String, NodeNames)> for Names {
    fn from_iter<I: IntoIterator<Item = (String, NodeNames)>>(nodes: I) -> Names {
        Names { nodes: nodes.into_iter().collect() }
    }
}

impl Names {
    /// How many nodes there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes' names, in the order of the alphabet.
    pub fn nodes(&self) -> impl Iterator<Item = &str> + Clone {
        self.nodes.keys().map(String::as_str)
    }

    /// What a node has, if there is one of this name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&NodeNames> {
        self.nodes.get(name)
    }

    pub(super) fn check_node(&self, name: &str) -> Result<&NodeNames, Problem> {
        self.node(name).ok_or_else(|| Problem::NoNode {
            name: quoted(name),
            hint: hint(name, self.nodes(), "the nodes are"),
        })
    }

    pub(super) fn check_disk(&self, node: &str, disk: u32) -> Result<(), Problem> {
        match self.node(node) {
            Some(has) if disk >= has.disks => {
                Err(Problem::NoDisk { node: quoted(node), disk, disks: has.disks })
            }
            // A node that does not exist is an error of its own.
            _ => Ok(()),
        }
    }

    pub(super) fn check_unit(&self, node: &str, unit: &str) -> Result<(), Problem> {
        match self.node(node) {
            Some(has) if !has.units.contains(unit) => Err(Problem::NoUnit {
                node: quoted(node),
                name: quoted(unit),
                hint: hint(unit, has.units.iter().map(String::as_str), "its units are"),
            }),
            _ => Ok(()),
        }
    }
}

/// What to say after a name that does not exist: the nearest one, or all.
pub(crate) fn hint<'k>(name: &str, known: impl Iterator<Item = &'k str> + Clone, all: &str) -> String {
    match suggest::nearest(name, known.clone()) {
        Some(near) => format!("did you mean {}?", quoted(near)),
        None => format!("{all} {}", some_of(known)),
    }
}

//! Names of a world that a plan can refer to.

use std::collections::{BTreeMap, BTreeSet};

use everett_input::text::quoted;

use crate::suggest;

use super::error::{Problem, some_of};

/// Disks and units of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeNames {
    /// Number of data disks.
    pub disks: u32,
    /// Names of the units, i.e. the services and drivers (programs of the workload) that Everett starts in the guest.
    pub units: BTreeSet<String>,
    /// Names of the units that are services.
    pub services: BTreeSet<String>,
}

/// Nodes of a world with their disks and units.
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
    /// Returns the number of nodes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the names of the nodes, in alphabetical order.
    pub fn nodes(&self) -> impl Iterator<Item = &str> + Clone {
        self.nodes.keys().map(String::as_str)
    }

    /// Returns the disks and units of a node, or `None` if no node has this name.
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
            // The check of the node's name already reports an unknown node.
            _ => Ok(()),
        }
    }

    pub(super) fn check_unit(&self, node: &str, unit: &str) -> Result<(), Problem> {
        self.check_among("unit", |has| &has.units, node, unit)
    }

    pub(super) fn check_service(&self, node: &str, unit: &str) -> Result<(), Problem> {
        self.check_among("service", |has| &has.services, node, unit)
    }

    fn check_among(
        &self,
        what: &'static str,
        of: fn(&NodeNames) -> &BTreeSet<String>,
        node: &str,
        name: &str,
    ) -> Result<(), Problem> {
        match self.node(node).map(of) {
            Some(known) if !known.contains(name) => Err(Problem::NoUnit {
                node: quoted(node),
                what,
                name: quoted(name),
                hint: hint(name, known.iter().map(String::as_str), &format!("its {what}s are")),
            }),
            // The check of the node's name already reports an unknown node.
            _ => Ok(()),
        }
    }
}

/// Returns the hint for an unknown name. If a known name is similar, the hint suggests it. Otherwise, the hint starts
/// with the words in `all`, e.g. "the nodes are", and lists the first known names.
pub(crate) fn hint<'k>(name: &str, known: impl Iterator<Item = &'k str> + Clone, all: &str) -> String {
    match suggest::nearest(name, known.clone()) {
        Some(near) => format!("did you mean {}?", quoted(near)),
        None => format!("{all} {}", some_of(known)),
    }
}

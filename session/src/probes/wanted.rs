//! A probe with its conditions and nodes.

use std::collections::BTreeSet;

use super::expression::Expression;
use super::probe::Probe;

/// A probe, and where it hits.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) probe: Probe,
    /// A hit counts only if none of these expressions is 0.
    pub(crate) conditions: Vec<Expression>,
    /// Numbers of the nodes that are probed. `None` for all nodes.
    pub(crate) nodes: Option<BTreeSet<usize>>,
    /// File and key of the declaration, with which errors begin. Empty if the probe is not in a world file.
    pub(crate) declared_as: String,
}

impl Wanted {
    pub(super) fn is_on(&self, node: usize) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&node))
    }
}

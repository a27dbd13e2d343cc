//! Edges of guest code (branches with source and target), in programs and kernel as installed, without instrumentation.
//!
//! * [`Collected`]: the edges that the machines of all nodes recorded
//! * [`programs`]: maps pages of code to files of the image
//! * [`table`]: writes edges as JSON lines for programs, and counts them by program
//!
//! A place is identified by the contents of its page, so a program's edge is the same edge on every node, at any
//! address. Pages that match no file of the image belong to the kernel or the agent, or were generated in memory.

pub mod programs;
pub mod table;

use std::collections::BTreeMap;

use everett_cpu::{CodeLocation, Edge};

/// Data of an edge besides its two ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Guest-virtual (linear) address of its target.
    pub address: u64,
    /// True if it was executed in user mode.
    pub user: bool,
    /// Indices of the nodes that executed it, ascending.
    pub nodes: Vec<usize>,
}

/// All recorded edges.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    edges: BTreeMap<(CodeLocation, CodeLocation), Seen>,
}

impl Collected {
    /// Adds the edges that a node's machine has recorded.
    pub fn add(&mut self, node: usize, edges: &[Edge]) {
        for &Edge { from, to, address, user } in edges {
            let seen =
                self.edges.entry((from, to)).or_insert_with(|| Seen { address, user, nodes: Vec::new() });
            if let Err(at) = seen.nodes.binary_search(&node) {
                seen.nodes.insert(at, node);
            }
        }
    }
    /// Returns the number of edges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.edges.len()
    }
    /// Returns true if there are no edges.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }
    /// Iterates over all edges, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = (CodeLocation, CodeLocation, &Seen)> {
        self.edges.iter().map(|(&(from, to), seen)| (from, to, seen))
    }
}

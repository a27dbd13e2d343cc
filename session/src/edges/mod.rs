//! Which branches of guest code went where: programs and kernel as they were installed, without instrumentation.
//!
//! * [`Collected`]: what the machines noted, of all nodes
//! * [`programs`]: from what pages hold to files of the image
//! * [`table`]: a file of it for programs, and a table for people
//!
//! A place is known by the contents of its page, so that a program's edge is the same edge on every node, whatever its
//! address. Pages of which the image has no file are the kernel's, the agent's, or were made in memory.

pub mod programs;
pub mod table;

use std::collections::BTreeMap;

use everett_cpu::{Edge, Place};

/// What is known of an edge besides its two ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The linear address where it ends.
    pub address: u64,
    /// In user mode.
    pub user: bool,
    /// On which nodes, by their numbers, ascending.
    pub nodes: Vec<usize>,
}

/// All edges that were seen.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    edges: BTreeMap<(Place, Place), Seen>,
}

impl Collected {
    /// Add what a node's machine has noted.
    pub fn add(&mut self, node: usize, edges: &[Edge]) {
        for &Edge { from, to, address, user } in edges {
            let seen =
                self.edges.entry((from, to)).or_insert_with(|| Seen { address, user, nodes: Vec::new() });
            if let Err(at) = seen.nodes.binary_search(&node) {
                seen.nodes.insert(at, node);
            }
        }
    }
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.edges.len()
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }
    /// All of them, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = (Place, Place, &Seen)> {
        self.edges.iter().map(|(&(from, to), seen)| (from, to, seen))
    }
}

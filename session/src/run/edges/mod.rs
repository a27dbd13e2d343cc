//! Edges of guest code. An edge leads from a branch instruction to the instruction that was executed after it. Programs
//! and kernel need no instrumentation.
//!
//! A place in code is identified by the contents of its page. An edge of a program is therefore the same edge on every
//! node and at every address. A page that is in no file of the image belongs to the kernel or the agent (Everett's
//! program in the guest), or was generated in memory.
//!
//! - this file: edges that the machines of all nodes recorded
//! - `images`: the images of a world
//! - `programs`: files of images that contain a page of code
//! - `sources`: functions and source lines of programs, as their files have them
//! - `functions`: the same, or nothing in builds without the feature `inside`
//! - [`table`]: edges with names: as JSON lines for tools, and as numbers of edges for people

mod functions;
mod images;
pub(crate) mod programs;
#[cfg(feature = "inside")]
pub(crate) mod sources;
pub mod table;

use std::collections::BTreeMap;

use everett_cpu::{CodeLocation, Edge};

/// Properties of an edge besides its source and target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Guest-virtual address of the target.
    pub address: u64,
    /// True if the edge was executed in user mode.
    pub user: bool,
    /// Indices of the nodes that executed the edge, ascending.
    pub nodes: Vec<usize>,
}

/// All edges that machines recorded.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    edges: BTreeMap<(CodeLocation, CodeLocation), Seen>,
}

impl Collected {
    /// Adds edges that the machine of the node with this index recorded.
    pub fn add(&mut self, node: usize, edges: &[Edge]) {
        for &Edge { from, to, address, user } in edges {
            let seen =
                self.edges.entry((from, to)).or_insert_with(|| Seen { address, user, nodes: Vec::new() });
            if let Err(at) = seen.nodes.binary_search(&node) {
                seen.nodes.insert(at, node);
            }
        }
    }
    /// Returns the number of different edges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.edges.len()
    }
    /// Returns true if no edge was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }
    /// Iterates over the edges, ordered by source and target.
    pub fn iter(&self) -> impl Iterator<Item = (CodeLocation, CodeLocation, &Seen)> {
        self.edges.iter().map(|(&(from, to), seen)| (from, to, seen))
    }
}

//! Iteration over all entries of a tree in order. The iterator's stack has one element per level.

use super::node::{FAN_OUT, LEVEL_BITS, Node};
use super::{Entry, Tree};

/// Iterator over entries in ascending order of page numbers.
#[derive(Clone)]
pub struct Iter<'a> {
    /// Path to the next entry. Each element has a node, the node's first page number, and the next slot to visit.
    path: Vec<(&'a Node, u64, usize)>,
    height: usize,
}

impl<'a> Iter<'a> {
    pub(super) fn new(tree: &'a Tree) -> Iter<'a> {
        let path = tree.root.as_deref().map(|root| (root, 0, 0)).into_iter().collect();
        Iter { path, height: tree.height as usize }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = (u64, &'a Entry);

    fn next(&mut self) -> Option<(u64, &'a Entry)> {
        loop {
            let level = self.height.checked_sub(self.path.len())? as u32;
            let (node, first, next) = self.path.last_mut()?;
            let slot = *next;
            if slot == FAN_OUT {
                self.path.pop();
                continue;
            }
            *next += 1;
            let index = *first + ((slot as u64) << (level * LEVEL_BITS));
            match *node {
                Node::Inner(children) => {
                    if let Some(child) = &children[slot] {
                        self.path.push((child, index, 0));
                    }
                }
                leaf @ Node::Leaf { .. } => {
                    if let Some(entry) = leaf.entry(slot) {
                        return Some((index, entry));
                    }
                }
            }
        }
    }
}

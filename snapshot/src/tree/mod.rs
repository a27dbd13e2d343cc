//! A persistent map from page number to page. Cloning is O(1). A map and its clone share all nodes that neither of them
//! changes afterwards.
//!
//! It is a radix tree of fan-out 8. Changing an entry copies the nodes on its path that are shared with another tree,
//! and changes unshared nodes in place. A fan-out of eight keeps many sparse versions small: if a version changes
//! a hundred entries spread over 65,536 pages, each change copies about 2.8 nodes of 96 bytes; with a fan-out of 16 it
//! would be 2.3 nodes of 160 bytes. To keep nodes small, they have no hashes. Equal subtrees that are not shared are
//! therefore compared entry by entry.
//!
//! An entry may state that a page is zero ([`Entry::Zero`]). This differs from having no entry, because the base
//! under the tree ([`crate::base`](mod@crate::base)) may have other content there.
//!
//! - `node`: one level; `iter`: all entries in order; `diff`: differences between two trees
//!
//! **Invariants.**
//! - The height grows with the largest number that was ever set, so that small maps are shallow. No tree is higher
//!   than 22, which bounds every recursion, including that of dropping.
//! - No node is empty: a tree without entries has no nodes.
//! - Results depend on the entries only, never on the height or on sharing.

mod diff;
mod iter;
mod node;

use std::fmt;
use std::sync::Arc;

pub use iter::Iter;
use node::{LEVEL_BITS, Node};

use crate::page::PageRef;

/// Entry of a map for a page number.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A page of zeroes.
    Zero,
    /// A page with content.
    Page(PageRef),
}

// A node with its two reference counts and the allocator's header takes exactly 96 bytes.
const _: () = assert!(size_of::<Entry>() == 8 && size_of::<Node>() == 72);

impl Entry {
    /// True if both are zero, or refer to the same page.
    #[inline]
    pub fn ptr_eq(&self, other: &Entry) -> bool {
        match (self, other) {
            (Entry::Zero, Entry::Zero) => true,
            (Entry::Page(a), Entry::Page(b)) => a.ptr_eq(b),
            _ => false,
        }
    }
}

/// Persistent map from page numbers to entries. Any `u64` is a page number.
#[derive(Clone, Default)]
pub struct Tree {
    root: Option<Arc<Node>>,
    /// Number of levels, including that of `root`.
    height: u32,
    len: u64,
}

impl Tree {
    /// Creates an empty map.
    pub fn new() -> Tree {
        Tree::default()
    }
    /// Returns the number of entries.
    pub fn len(&self) -> u64 {
        self.len
    }
    /// True if the map has no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// True if both trees share their root node and so are equal. Equal trees may have different nodes.
    pub fn ptr_eq(&self, other: &Tree) -> bool {
        match (&self.root, &other.root) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }

    /// Returns the entry of a page number.
    #[inline]
    pub fn get(&self, index: u64) -> Option<&Entry> {
        if !fits(index, self.height) {
            return None;
        }
        let mut node = self.root.as_deref()?;
        let mut level = self.height;
        loop {
            level -= 1;
            match node {
                Node::Inner(children) => node = children[node::slot(index, level)].as_deref()?,
                leaf @ Node::Leaf { .. } => return leaf.entry(node::slot(index, level)),
            }
        }
    }

    /// Sets an entry, replacing an existing one.
    pub fn set(&mut self, index: u64, entry: Entry) {
        while !fits(index, self.height) {
            self.grow();
        }
        let root = self.root.get_or_insert_with(|| Arc::new(Node::empty(self.height - 1)));
        if node::set(root, self.height - 1, index, entry) {
            self.len += 1;
        }
    }

    /// Removes an entry. If it does not exist, no node is copied.
    pub fn remove(&mut self, index: u64) {
        if self.get(index).is_none() {
            return;
        }
        self.len -= 1;
        if self.len == 0 {
            (self.root, self.height) = (None, 0);
        } else if let Some(root) = &mut self.root {
            node::remove(root, self.height - 1, index);
        }
    }

    /// Returns the greatest page number that has an entry.
    pub fn last(&self) -> Option<u64> {
        let (mut node, mut above) = (self.root.as_ref()?, 0);
        loop {
            match &**node {
                Node::Inner(children) => {
                    let slot = children.iter().rposition(Option::is_some)?;
                    above = above << LEVEL_BITS | slot as u64;
                    node = children[slot].as_ref()?;
                }
                Node::Leaf { present, .. } => {
                    let slot = present.checked_ilog2()?;
                    return Some(above << LEVEL_BITS | u64::from(slot));
                }
            }
        }
    }

    /// Iterates over all entries by ascending page number.
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(self)
    }

    /// Calls `f(index, mine, theirs)` for each page number whose entries differ, ascending. Pages are compared by
    /// pointer, so equal pages from different pools count as different. Shared subtrees are skipped, so the cost is
    /// proportional to the changes in either tree since they diverged.
    pub fn diff<'a>(&'a self, other: &'a Tree, mut f: impl FnMut(u64, Option<&'a Entry>, Option<&'a Entry>)) {
        diff::trees(self, other, &mut f);
    }

    /// Adds a level at the top.
    fn grow(&mut self) {
        if let Some(root) = self.root.take() {
            let mut children: [Option<Arc<Node>>; node::FAN_OUT] = Default::default();
            children[0] = Some(root);
            self.root = Some(Arc::new(Node::Inner(children)));
        }
        self.height += 1;
    }
}

/// True if a tree of this height has a place for `index`.
#[inline]
fn fits(index: u64, height: u32) -> bool {
    match height {
        0 => false,
        _ => index.checked_shr(height * LEVEL_BITS).unwrap_or(0) == 0,
    }
}

impl<'a> IntoIterator for &'a Tree {
    type Item = (u64, &'a Entry);
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}
impl FromIterator<(u64, Entry)> for Tree {
    fn from_iter<I: IntoIterator<Item = (u64, Entry)>>(entries: I) -> Tree {
        let mut tree = Tree::new();
        entries.into_iter().for_each(|(index, entry)| tree.set(index, entry));
        tree
    }
}
impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({} entries)", self.len)
    }
}

#[cfg(test)]
mod tests;

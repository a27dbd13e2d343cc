//! A persistent map from page numbers to pages. Cloning takes constant time. A map and its clone share all nodes that
//! neither of them changes afterwards.
//!
//! The map is a radix tree with a fan-out of 8. A change copies the nodes on its path that another tree shares, and
//! changes other nodes in place. The small fan-out keeps many similar versions small. If a version changes a hundred
//! entries spread over 65,536 pages, each change copies about 2.8 nodes of 96 bytes. With a fan-out of 16, a change
//! would copy 2.3 nodes of 160 bytes. Nodes have no hashes, which keeps them small. Equal subtrees that are not shared
//! are therefore compared entry by entry.
//!
//! An entry may say that a page is zero ([`Entry::Zero`]). This differs from having no entry, because the base below
//! the tree ([`crate::base`](mod@crate::base)) may have other content there.
//!
//! - `node`: one level; `iter`: all entries in order; `diff`: differences between two trees
//!
//! **Invariants.**
//! - The height grows with the largest page number that was ever set, so small maps are shallow. No tree is higher than
//!   22 levels. This bounds every recursion, including the one of dropping a tree.
//! - No node is empty, and a tree without entries has no nodes.
//! - Results depend only on the entries, never on the height. Only [`Tree::ptr_eq`] depends on which nodes are shared.

mod diff;
mod iter;
mod node;

use std::fmt;
use std::sync::Arc;

pub use iter::Iter;
use node::{LEVEL_BITS, Node};

use crate::page::PageRef;

/// Entry of a map: the content of one page.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A page of zeroes.
    Zero,
    /// A page that is not all zeroes.
    Page(PageRef),
}

// A node, its two reference counts and the allocator's header together take exactly 96 bytes.
const _: () = assert!(size_of::<Entry>() == 8 && size_of::<Node>() == 72);

impl Entry {
    /// True if both are zero or refer to the same page.
    #[inline]
    pub fn ptr_eq(&self, other: &Entry) -> bool {
        match (self, other) {
            (Entry::Zero, Entry::Zero) => true,
            (Entry::Page(a), Entry::Page(b)) => a.ptr_eq(b),
            _ => false,
        }
    }
}

/// Persistent map from page numbers to entries. Page numbers may be any `u64`.
#[derive(Clone, Default)]
pub struct Tree {
    root: Option<Arc<Node>>,
    /// Number of levels, including the level of `root`.
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
    /// True if both trees share their root node, and are therefore equal. Equal trees may still have different root
    /// nodes.
    pub fn ptr_eq(&self, other: &Tree) -> bool {
        match (&self.root, &other.root) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }

    /// Returns the entry of page number `index`, if any.
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

    /// Sets the entry of page number `index`, and replaces an existing one.
    pub fn set(&mut self, index: u64, entry: Entry) {
        while !fits(index, self.height) {
            self.grow();
        }
        let root = self.root.get_or_insert_with(|| Arc::new(Node::empty(self.height - 1)));
        if node::set(root, self.height - 1, index, entry) {
            self.len += 1;
        }
    }

    /// Removes the entry of page number `index`. Copies no node if there is no entry.
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

    /// Iterates over all entries in ascending order of page numbers.
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(self)
    }

    /// Calls `f(index, mine, theirs)` for each page number whose entries differ, in ascending order. Compares pages by
    /// pointer. A pool stores each content once, but equal pages from different pools count as different. Skips shared
    /// subtrees, so the cost is proportional to the changes in either tree since they diverged.
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

/// True if a tree of this height can have an entry for `index`.
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

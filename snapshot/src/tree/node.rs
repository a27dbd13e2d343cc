//! Nodes of a tree that maps page numbers to entries (the contents of pages). A leaf has up to eight entries, and an
//! inner node up to eight children. A node that only one tree uses is changed in place. A node that several trees share
//! is copied first.

use std::sync::Arc;

use super::Entry;

/// Number of bits of a page number that one level uses.
pub(super) const LEVEL_BITS: u32 = 3;
/// Number of children or entries of a node.
pub(super) const FAN_OUT: usize = 1 << LEVEL_BITS;

/// A node: a leaf on level 0, an inner node on all other levels. The mask `present` of a leaf marks its existing
/// entries, because an `Entry` has no spare value for "missing". Slots without an entry hold the
/// filler `Entry::Zero`.
#[derive(Clone)]
pub(super) enum Node {
    Inner([Option<Arc<Node>>; FAN_OUT]),
    Leaf { present: u8, entries: [Entry; FAN_OUT] },
}

impl Node {
    /// Creates an empty node of this level. The caller must insert an entry, because no node of a tree is empty.
    pub(super) fn empty(level: u32) -> Node {
        if level > 0 {
            return Node::Inner(Default::default());
        }
        Node::Leaf { present: 0, entries: [const { Entry::Zero }; FAN_OUT] }
    }
    /// Returns the entry in a slot of a leaf, if any.
    #[inline]
    pub(super) fn entry(&self, slot: usize) -> Option<&Entry> {
        match self {
            Node::Leaf { present, entries } if present >> slot & 1 == 1 => Some(&entries[slot]),
            _ => None,
        }
    }
}

/// Returns the slot for a page number in a node of this level.
#[inline]
pub(super) fn slot(index: u64, level: u32) -> usize {
    (index >> (level * LEVEL_BITS)) as usize % FAN_OUT
}

/// Sets an entry below `node`, which is on level `level`. Returns true if the entry is new.
pub(super) fn set(node: &mut Arc<Node>, level: u32, index: u64, entry: Entry) -> bool {
    let slot = slot(index, level);
    match Arc::make_mut(node) {
        Node::Inner(children) => {
            let child = children[slot].get_or_insert_with(|| Arc::new(Node::empty(level - 1)));
            set(child, level - 1, index, entry)
        }
        Node::Leaf { present, entries } => {
            let new = *present >> slot & 1 == 0;
            *present |= 1 << slot;
            entries[slot] = entry;
            new
        }
    }
}

/// Removes an entry, which must exist. Returns true if the node is now empty; its parent must then drop it.
pub(super) fn remove(node: &mut Arc<Node>, level: u32, index: u64) -> bool {
    let slot = slot(index, level);
    match Arc::make_mut(node) {
        Node::Inner(children) => {
            let empty = children[slot].as_mut().is_none_or(|child| remove(child, level - 1, index));
            if empty {
                children[slot] = None;
            }
            empty && children.iter().all(Option::is_none)
        }
        Node::Leaf { present, entries } => {
            *present &= !(1 << slot);
            entries[slot] = Entry::Zero;
            *present == 0
        }
    }
}

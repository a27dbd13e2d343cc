//! One level of a tree: eight children or eight entries, changed in place where unshared and copied where shared.

use std::sync::Arc;

use super::Entry;

/// Bits of a page number that one level decides.
pub(super) const LEVEL_BITS: u32 = 3;
/// Children of a node.
pub(super) const FAN_OUT: usize = 1 << LEVEL_BITS;

/// A node. Those of level 0 are leaves, all others are not. A mask says which entries are there, as an entry has no room to
/// say so itself; those that are not are `Zero`.
#[derive(Clone)]
pub(super) enum Node {
    Inner([Option<Arc<Node>>; FAN_OUT]),
    Leaf { present: u8, entries: [Entry; FAN_OUT] },
}

impl Node {
    /// A node of this level without anything, which is about to get something.
    pub(super) fn empty(level: u32) -> Node {
        if level > 0 {
            return Node::Inner(Default::default());
        }
        Node::Leaf { present: 0, entries: [const { Entry::Zero }; FAN_OUT] }
    }
    /// The entry in a slot of a leaf.
    #[inline]
    pub(super) fn entry(&self, slot: usize) -> Option<&Entry> {
        match self {
            Node::Leaf { present, entries } if present >> slot & 1 == 1 => Some(&entries[slot]),
            _ => None,
        }
    }
}

/// Where a page number goes in a node of this level.
#[inline]
pub(super) fn slot(index: u64, level: u32) -> usize {
    (index >> (level * LEVEL_BITS)) as usize % FAN_OUT
}

/// Set an entry below `node`, which is of this level. Says whether there was none.
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

/// Remove an entry that is there. Says whether the node is empty now: then its parent drops it.
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

//! Differences between two trees. A comparison of pointers skips subtrees that both share.

use std::sync::Arc;

use super::node::{FAN_OUT, LEVEL_BITS, Node};
use super::{Entry, Tree};

/// Callback for a difference: page number, entry of the first tree, entry of the second tree.
type Found<'a, 'f> = dyn FnMut(u64, Option<&'a Entry>, Option<&'a Entry>) + 'f;

/// Part of one tree: the entries in the range of page numbers that is being compared. The part is a node and its
/// height, or no node. If the other tree is higher, the range may be larger than the range that the node covers. The
/// node then covers the lowest numbers of the compared range, and its tree has no entries for the other numbers.
#[derive(Clone, Copy)]
struct Part<'a> {
    node: Option<&'a Arc<Node>>,
    height: u32,
}

pub(super) fn trees<'a>(a: &'a Tree, b: &'a Tree, f: &mut Found<'a, '_>) {
    let part = |tree: &'a Tree| Part { node: tree.root.as_ref(), height: tree.height };
    parts(part(a), part(b), a.height.max(b.height), 0, f);
}

/// Compares two parts in the range of page numbers that starts at `first` and that a node of `height` levels covers.
fn parts<'a>(a: Part<'a>, b: Part<'a>, height: u32, first: u64, f: &mut Found<'a, '_>) {
    match (a.node, b.node) {
        (None, None) => return,
        (Some(a), Some(b)) if Arc::ptr_eq(a, b) => return,
        _ => {}
    }
    let Some(level) = height.checked_sub(1) else { return };
    for slot in 0..FAN_OUT {
        let index = first + ((slot as u64) << (level * LEVEL_BITS));
        if level > 0 {
            parts(a.child(height, slot), b.child(height, slot), level, index, f);
            continue;
        }
        match (a.entry(slot), b.entry(slot)) {
            (None, None) => {}
            (Some(a), Some(b)) if a.ptr_eq(b) => {}
            (a, b) => f(index, a, b),
        }
    }
}

impl<'a> Part<'a> {
    /// Divides the range of a node of `height` levels into one slot for each child, and returns the part of this tree
    /// in slot `slot`.
    fn child(self, height: u32, slot: usize) -> Part<'a> {
        if self.height < height {
            return Part { node: self.node.filter(|_| slot == 0), height: self.height };
        }
        let node = match self.node.map(Arc::as_ref) {
            Some(Node::Inner(children)) => children[slot].as_ref(),
            _ => None,
        };
        Part { node, height: height - 1 }
    }
    fn entry(self, slot: usize) -> Option<&'a Entry> {
        self.node?.entry(slot)
    }
}

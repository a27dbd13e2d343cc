//! The tree of a store's keys (the lineage), and the queue of values that can be evicted. The value of a key can be
//! derived from the value of its parent at a known cost.
//!
//! Only some keys have a value. The value *above* a value belongs to the nearest ancestor that has one. The values
//! *below* a value are the values that have it above them. Each value stores how many bytes it has beyond the value
//! above it, and by how much this number would grow if the value above were evicted.
//!
//! **Invariants.**
//! - The queue holds exactly the values whose eviction frees bytes, each with the freed bytes and the cost of deriving
//!   it from the value above.
//! - Adding or removing a value changes these numbers only for this value, the value above it, and two levels of values
//!   below it. Only these numbers are computed again.
//! - Each key knows its *live* children, which have a value or a live child themselves. The search for the values below
//!   skips all other subtrees.
//! - No function here is recursive, because a lineage may be a long chain.

use std::collections::{BTreeMap, BTreeSet};

use super::Layered;
use super::rank::Rank;

/// A key of the tree.
#[derive(Debug, Clone)]
struct Node<K, V> {
    /// Parent of the key; `None` for the root.
    parent: Option<K>,
    /// Cost of deriving the key's value from its parent's value.
    cost: u64,
    kept: Option<Kept<K, V>>,
    /// Children that have a value or a live child.
    live: BTreeSet<K>,
}

/// Value of a key, with its size and its position in the queue.
#[derive(Debug, Clone)]
struct Kept<K, V> {
    value: V,
    /// Bytes that the value has and the value above lacks. 0 for the root.
    bytes: u64,
    /// Bytes by which `bytes` would grow if the value above were evicted. Can be negative: this value and the value two
    /// above may share pages that the value above lacks.
    inherited: i128,
    /// Position in the queue; `None` if eviction would free nothing.
    rank: Option<Rank<K>>,
}

/// Tree of keys with costs and values (see the module).
#[derive(Debug, Clone)]
pub(super) struct Lineage<K: Ord, V> {
    nodes: BTreeMap<K, Node<K, V>>,
    queue: BTreeSet<Rank<K>>,
    bytes: u64,
    present: usize,
}

impl<K: Ord + Clone, V: Layered> Lineage<K, V> {
    pub(super) fn new(root: K, value: V) -> Lineage<K, V> {
        let kept = Some(Kept { value, bytes: 0, inherited: 0, rank: None });
        let root = (root, Node { parent: None, cost: 0, kept, live: BTreeSet::new() });
        Lineage { nodes: BTreeMap::from([root]), queue: BTreeSet::new(), bytes: 0, present: 1 }
    }

    pub(super) fn known(&self) -> usize {
        self.nodes.len()
    }
    pub(super) fn present(&self) -> usize {
        self.present
    }
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Returns the parent of a key, and the cost of deriving the key's value from the parent's.
    pub(super) fn edge(&self, key: &K) -> Option<(Option<&K>, u64)> {
        self.nodes.get(key).map(|node| (node.parent.as_ref(), node.cost))
    }
    pub(super) fn value(&self, key: &K) -> Option<&V> {
        self.kept(key).map(|kept| &kept.value)
    }
    /// Returns the key whose value to evict next. Skips `except`.
    pub(super) fn cheapest(&self, except: &K) -> Option<K> {
        self.queue.iter().map(|rank| &rank.key).find(|key| *key != except).cloned()
    }

    /// Adds a new key. Its parent must be in the tree.
    pub(super) fn add(&mut self, key: K, parent: K, cost: u64) {
        let parent = Some(parent);
        self.nodes.insert(key, Node { parent, cost, kept: None, live: BTreeSet::new() });
    }

    /// Gives a key its value. Does nothing if the key has one.
    pub(super) fn put(&mut self, key: &K, value: V) {
        let Some(node) = self.nodes.get_mut(key) else { return };
        if node.kept.is_some() {
            return;
        }
        node.kept = Some(Kept { value, bytes: 0, inherited: 0, rank: None });
        self.present += 1;
        self.update_live(key);
        self.measure(key);
        self.update_around(key);
    }

    /// Drops the value of a key, which must not be the root.
    pub(super) fn take(&mut self, key: &K) {
        let Some(kept) = self.nodes.get_mut(key).and_then(|node| node.kept.take()) else { return };
        if let Some(rank) = &kept.rank {
            self.queue.remove(rank);
        }
        self.bytes = self.bytes.saturating_sub(kept.bytes);
        self.present -= 1;
        self.update_live(key);
        self.update_around(key);
    }

    fn kept(&self, key: &K) -> Option<&Kept<K, V>> {
        self.nodes.get(key)?.kept.as_ref()
    }
    fn kept_mut(&mut self, key: &K) -> Option<&mut Kept<K, V>> {
        self.nodes.get_mut(key)?.kept.as_mut()
    }

    /// Returns the nearest ancestor that has a value, and the cost of deriving `key` from it. Returns `None` for the
    /// root and for an unknown key.
    fn above(&self, key: &K) -> Option<(&K, u64)> {
        let mut at = self.nodes.get(key)?;
        let mut cost = at.cost;
        loop {
            let key = at.parent.as_ref()?;
            at = self.nodes.get(key)?;
            if at.kept.is_some() {
                return Some((key, cost));
            }
            cost = cost.saturating_add(at.cost);
        }
    }

    /// Returns the nearest descendants that have a value.
    fn below(&self, key: &K) -> Vec<K> {
        let mut found = Vec::new();
        let mut open: Vec<&K> = self.nodes.get(key).into_iter().flat_map(|node| &node.live).collect();
        while let Some(key) = open.pop() {
            match self.nodes.get(key) {
                Some(node) if node.kept.is_none() => open.extend(&node.live),
                _ => found.push(key.clone()),
            }
        }
        found
    }

    /// Updates the live children of the ancestors after a change to `key`. Stops at the first ancestor without a
    /// change.
    fn update_live(&mut self, key: &K) {
        let mut child = key.clone();
        while let Some(node) = self.nodes.get(&child) {
            let live = node.kept.is_some() || !node.live.is_empty();
            let Some(key) = node.parent.clone() else { return };
            let Some(parent) = self.nodes.get_mut(&key) else { return };
            let changed = if live { parent.live.insert(child) } else { parent.live.remove(&child) };
            if !changed || parent.kept.is_some() {
                return;
            }
            child = key;
        }
    }

    /// Updates the numbers of all values that a new or dropped value of `key` affects.
    fn update_around(&mut self, key: &K) {
        let below = self.below(key);
        for key in &below {
            self.measure(key);
            for key in &self.below(key) {
                self.measure(key);
            }
        }
        let above = self.above(key).map(|(above, _)| above.clone());
        for key in below.iter().chain([key]).chain(&above) {
            self.queue(key);
        }
    }

    /// Compares a value with the two values above it, and stores its numbers.
    fn measure(&mut self, key: &K) {
        let Some((value, (above, _))) = self.value(key).zip(self.above(key)) else { return };
        let beyond = |ancestor: &K| self.value(ancestor).map(|ancestor| value.bytes_beyond(ancestor));
        let bytes = beyond(above).unwrap_or(0);
        let without = self.above(above).and_then(|(above, _)| beyond(above)).unwrap_or(0);
        let Some(kept) = self.kept_mut(key) else { return };
        let before = std::mem::replace(&mut kept.bytes, bytes);
        kept.inherited = i128::from(without) - i128::from(bytes);
        self.bytes = self.bytes.saturating_sub(before).saturating_add(bytes);
    }

    /// Moves a value to its position in the queue.
    fn queue(&mut self, key: &K) {
        let Some(kept) = self.kept(key) else { return };
        let left: i128 = self.below(key).iter().filter_map(|key| Some(self.kept(key)?.inherited)).sum();
        let freed = u64::try_from(i128::from(kept.bytes) - left).unwrap_or(0);
        let cost = self.above(key).map(|(_, cost)| cost).filter(|_| freed > 0);
        let rank = cost.map(|cost| Rank { cost, bytes: freed, key: key.clone() });
        let Some(kept) = self.kept_mut(key) else { return };
        if let Some(before) = std::mem::replace(&mut kept.rank, rank.clone()) {
            self.queue.remove(&before);
        }
        self.queue.extend(rank);
    }
}

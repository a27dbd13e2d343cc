//! Keys, parents, costs and values of a store, and the queue of values that can be evicted.
//!
//! **Invariants.** The queue holds exactly the values that may be evicted, each with the cost of deriving it from the
//! nearest ancestor that has a value. When a value is added or removed, the costs of the values below it are updated,
//! on each path down to the next value. To find these values quickly, each key knows its *live* children, which have a
//! value or a live child themselves; all other subtrees are skipped. No function here is recursive, because lineages
//! may be long chains.

use std::collections::{BTreeMap, BTreeSet};

use super::rank::Rank;

/// A known key.
#[derive(Debug, Clone)]
pub(super) struct Node<K, V> {
    pub(super) parent: Option<K>,
    pub(super) children: BTreeSet<K>,
    /// Cost of the derivation from the parent.
    pub(super) cost: u64,
    pub(super) bytes: u64,
    pub(super) pins: u32,
    pub(super) value: Option<V>,
    /// Children that have a value or a live child.
    live: BTreeSet<K>,
    /// Cost of the derivation from the nearest ancestor with a value. Valid only for keys that have a value.
    distance: u64,
}

/// Tree of known keys; see the module's documentation.
#[derive(Debug, Clone)]
pub(super) struct Lineage<K: Ord, V> {
    nodes: BTreeMap<K, Node<K, V>>,
    queue: BTreeSet<Rank<K>>,
    bytes: u64,
    present: usize,
}

impl<K: Ord, V> Default for Lineage<K, V> {
    fn default() -> Lineage<K, V> {
        Lineage { nodes: BTreeMap::new(), queue: BTreeSet::new(), bytes: 0, present: 0 }
    }
}

impl<K: Ord + Clone, V> Lineage<K, V> {
    pub(super) fn node(&self, key: &K) -> Option<&Node<K, V>> {
        self.nodes.get(key)
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
    pub(super) fn present_keys(&self) -> impl Iterator<Item = &K> {
        self.nodes.iter().filter(|(_, node)| node.value.is_some()).map(|(key, _)| key)
    }

    /// Adds an unknown key. Its parent must be known.
    pub(super) fn add(&mut self, key: K, parent: Option<K>, cost: u64) {
        if let Some(parent) = parent.as_ref().and_then(|parent| self.nodes.get_mut(parent)) {
            parent.children.insert(key.clone());
        }
        let (children, live) = (BTreeSet::new(), BTreeSet::new());
        let node = Node { parent, children, cost, bytes: 0, pins: 0, value: None, live, distance: 0 };
        self.nodes.insert(key, node);
    }

    /// Gives a known key a value of `bytes` bytes.
    pub(super) fn put(&mut self, key: &K, bytes: u64, value: V) {
        let distance = self.distance(key);
        self.unqueue(key);
        let Some(node) = self.nodes.get_mut(key) else { return };
        self.bytes = self
            .bytes
            .saturating_sub(if node.value.is_some() { node.bytes } else { 0 })
            .saturating_add(bytes);
        (node.bytes, node.distance) = (bytes, distance);
        let new = node.value.replace(value).is_none();
        self.queue(key);
        if new {
            self.present += 1;
            self.update_live(key);
            // Descendants are now derived from here.
            self.update_below(key, 0);
        }
    }

    /// Removes and returns the value of a key.
    pub(super) fn take(&mut self, key: &K) -> Option<V> {
        self.unqueue(key);
        let node = self.nodes.get_mut(key)?;
        let value = node.value.take()?;
        self.bytes = self.bytes.saturating_sub(node.bytes);
        self.present -= 1;
        // Descendants now have to be derived through this key, at its additional cost.
        let distance = node.distance;
        self.update_live(key);
        self.update_below(key, distance);
        Some(value)
    }

    /// Removes a key without children and returns its value.
    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let value = self.take(key);
        let node = self.nodes.remove(key)?;
        if let Some(parent) = node.parent.and_then(|parent| self.nodes.get_mut(&parent)) {
            parent.children.remove(key);
        }
        value
    }

    /// Adds a pin to a key if `more` is set, or else removes one.
    pub(super) fn pin(&mut self, key: &K, more: bool) {
        self.unqueue(key);
        if let Some(node) = self.nodes.get_mut(key) {
            node.pins = if more { node.pins.saturating_add(1) } else { node.pins.saturating_sub(1) };
        }
        self.queue(key);
    }

    /// Returns the key to evict next, other than `keep`.
    pub(super) fn cheapest(&self, keep: Option<&K>) -> Option<K> {
        self.queue.iter().map(|rank| &rank.key).find(|&key| Some(key) != keep).cloned()
    }

    /// Returns the keys without a value from `key` upward to the nearest value. Returns `None` if the key is unknown
    /// or no ancestor has a value.
    pub(super) fn missing_path(&self, key: &K) -> Option<Vec<K>> {
        let mut path = Vec::new();
        let mut at = key;
        loop {
            let node = self.nodes.get(at)?;
            if node.value.is_some() {
                return Some(path);
            }
            path.push(at.clone());
            at = node.parent.as_ref()?;
        }
    }

    /// Returns the cost of deriving a value from the nearest ancestor that has one.
    fn distance(&self, key: &K) -> u64 {
        let mut sum = 0u64;
        let mut at = self.nodes.get(key);
        while let Some(node) = at {
            sum = sum.saturating_add(node.cost);
            let parent = node.parent.as_ref().and_then(|parent| self.nodes.get(parent));
            at = parent.filter(|parent| parent.value.is_none());
        }
        sum
    }

    /// Updates the live children of the ancestors after a change to `key`. Stops at the first ancestor that is not
    /// affected.
    fn update_live(&mut self, key: &K) {
        let mut child = key.clone();
        while let Some(node) = self.nodes.get(&child) {
            let live = node.value.is_some() || !node.live.is_empty();
            let Some(key) = node.parent.clone() else { return };
            let Some(parent) = self.nodes.get_mut(&key) else { return };
            let changed = if live { parent.live.insert(child) } else { parent.live.remove(&child) };
            if !changed || parent.value.is_some() {
                return;
            }
            child = key;
        }
    }

    /// Updates the costs of the values below `key`, on each path down to the next value. `start` is the cost of
    /// deriving `key` from its nearest ancestor with a value, or 0 if `key` has a value itself.
    fn update_below(&mut self, key: &K, start: u64) {
        let Some(node) = self.nodes.get(key) else { return };
        let mut open: Vec<(K, u64)> = node.live.iter().map(|child| (child.clone(), start)).collect();
        while let Some((key, above)) = open.pop() {
            let Some(node) = self.nodes.get(&key) else { continue };
            let distance = above.saturating_add(node.cost);
            if node.value.is_none() {
                open.extend(node.live.iter().map(|child| (child.clone(), distance)));
                continue;
            }
            self.unqueue(&key);
            if let Some(node) = self.nodes.get_mut(&key) {
                node.distance = distance;
            }
            self.queue(&key);
        }
    }

    /// Returns the queue entry of a value that may be evicted.
    fn rank(&self, key: &K) -> Option<Rank<K>> {
        let node = self.nodes.get(key)?;
        let evictable = node.value.is_some() && node.parent.is_some() && node.pins == 0 && node.bytes > 0;
        evictable.then(|| Rank { cost: node.distance, bytes: node.bytes, key: key.clone() })
    }
    fn unqueue(&mut self, key: &K) {
        if let Some(rank) = self.rank(key) {
            self.queue.remove(&rank);
        }
    }
    fn queue(&mut self, key: &K) {
        if let Some(rank) = self.rank(key) {
            self.queue.insert(rank);
        }
    }
}

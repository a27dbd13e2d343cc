//! Values that can be derived again, kept within a budget of bytes.
//!
//! Moments form a tree: each except the root was derived from its parent by work of a known cost. A store keeps this
//! tree (the *lineage*) permanently, and the values of some of its keys. When the values exceed the budget, the store
//! evicts first those that cost least to derive again, per freed byte. A caller that needs an evicted value derives
//! it again from the nearest ancestor that has one.
//!
//! Values share memory with their ancestors, so a value counts with the bytes in which it differs from the nearest
//! kept ancestor ([`Layered`]). An evicted value leaves its share to those below it, which are counted anew; it frees
//! only the rest. The sum is therefore never less than the memory of all values beyond the root. It is more where
//! several values share what they have from an ancestor that is evicted.
//!
//! - `lineage`: keys, parents, costs and values; `rank`: the order of eviction
//!
//! **Invariants.**
//! - Evictions are a function of the calls: the caller states costs (for example in instructions), no time is measured,
//!   and ties are broken by key. Nevertheless **no result may depend on which values are present**, because the host
//!   decides the order in which workers call. A store is a cache: a value derived again must equal the evicted one, and
//!   the budget must affect nothing but time.
//! - The root and the value of the current call are not evicted, so these alone may exceed the budget.
//!
//! Not here: locks (put the store into one), and the derivation of values.

mod lineage;
mod rank;

use std::fmt::Debug;
use std::sync::Arc;

use lineage::Lineage;

use crate::image::PageImage;
use crate::page::PAGE;
use crate::tree::{Entry, Tree};

/// A value that shares memory with its ancestors.
pub trait Layered {
    /// Returns the number of bytes of this value that `ancestor` does not hold.
    fn bytes_beyond(&self, ancestor: &Self) -> u64;
}

impl Layered for Tree {
    fn bytes_beyond(&self, ancestor: &Tree) -> u64 {
        let mut bytes = 0;
        self.diff(ancestor, |_, mine, _| {
            if matches!(mine, Some(Entry::Page(_))) {
                bytes += PAGE as u64;
            }
        });
        bytes
    }
}

impl Layered for PageImage {
    /// The base is not counted. Images over different bases share nothing.
    fn bytes_beyond(&self, ancestor: &PageImage) -> u64 {
        match Arc::ptr_eq(self.base(), ancestor.base()) {
            true => self.delta().bytes_beyond(ancestor.delta()),
            false => self.delta().bytes_beyond(&Tree::new()),
        }
    }
}

/// Error from adding a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError<K: Debug> {
    /// The parent of a new key is unknown.
    #[error("{key:?} has the parent {parent:?}, which is not in the store")]
    Parent {
        /// The new key.
        key: K,
        /// Its parent.
        parent: K,
    },
    /// The key is known with another parent or cost.
    #[error("{0:?} is in the store with another parent or another cost")]
    Lineage(K),
}

/// Size of a store, and its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStats {
    /// Number of known keys.
    pub known: usize,
    /// Number of values that are present.
    pub present: usize,
    /// Bytes of these values beyond the root's.
    pub bytes: u64,
    /// Number of values evicted so far.
    pub evicted: u64,
}

/// Cache of values under a budget, with their lineage.
#[derive(Debug, Clone)]
pub struct Store<K: Ord + Clone, V> {
    lineage: Lineage<K, V>,
    budget: u64,
    evicted: u64,
}

impl<K: Ord + Clone + Debug, V: Layered> Store<K, V> {
    /// Creates a store that keeps the root's value, and others of at most `budget` bytes beyond it.
    pub fn new(budget: u64, root: K, value: V) -> Store<K, V> {
        Store { lineage: Lineage::new(root, value), budget, evicted: 0 }
    }

    /// Adds a value, unless the key has one. `cost` is the cost of deriving it from `parent`.
    ///
    /// # Errors
    /// Returns an error if the parent is unknown, or if the key is known with another parent or another cost.
    pub fn insert(&mut self, key: K, parent: K, cost: u64, value: V) -> Result<(), StoreError<K>> {
        match self.lineage.edge(&key) {
            Some(edge) if edge != (Some(&parent), cost) => return Err(StoreError::Lineage(key)),
            Some(_) => {}
            None if self.lineage.edge(&parent).is_none() => return Err(StoreError::Parent { key, parent }),
            None => self.lineage.add(key.clone(), parent, cost),
        }
        self.lineage.put(&key, value);
        while self.lineage.bytes() > self.budget
            && let Some(victim) = self.lineage.cheapest(&key)
        {
            self.lineage.take(&victim);
            self.evicted += 1;
        }
        Ok(())
    }

    /// Returns the value of a key if it is present. Does not affect evictions.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.lineage.value(key)
    }

    /// Returns the size of the store and its counters.
    pub fn stats(&self) -> StoreStats {
        StoreStats {
            known: self.lineage.known(),
            present: self.lineage.present(),
            bytes: self.lineage.bytes(),
            evicted: self.evicted,
        }
    }
}

#[cfg(test)]
mod tests;

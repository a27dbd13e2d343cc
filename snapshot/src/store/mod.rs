//! A cache of values that can be derived again, with a budget of bytes.
//!
//! Moments form a tree: each moment except the root was derived from its parent by work of a known cost. A store keeps
//! this tree (the *lineage*) forever, but only some of the values. When the values exceed the budget, the store evicts
//! the values that cost least to derive again per freed byte. A caller that needs an evicted value derives it again
//! from the nearest ancestor that has a value.
//!
//! Values share memory with their ancestors. A value therefore counts with the bytes that it does not share with the
//! nearest ancestor that has a value ([`Layered`]). When a value is evicted, the values below it are counted anew,
//! because they may still hold parts of it. The eviction frees only the bytes that no value below holds. The sum of the
//! counts is never less than the memory that all values need in addition to the root's value. The sum is larger than
//! that memory if several values share memory with an evicted ancestor.
//!
//! - `lineage`: keys, parents, costs and values; `rank`: the order of eviction
//!
//! **Invariants.**
//! - Evictions are a function of the calls. The caller states costs (for example in instructions), the store measures
//!   no time, and it breaks ties by key. Nevertheless, **no result may depend on which values are present**, because
//!   the host decides the order in which workers call. A value that is derived again must equal the evicted one, and
//!   the budget must affect nothing but time.
//! - The root's value does not count towards the budget and is never evicted. A call that adds a value does not evict
//!   that value, so a single large value may exceed the budget.
//!
//! The store has no lock; threads that share a store need one around it. The caller derives values.

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
    /// Returns the number of bytes that this value holds and `ancestor` does not.
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
    /// Counts only pages that differ from the image's base. A base is an initial content that several images share.
    /// Images with different bases count as sharing nothing.
    fn bytes_beyond(&self, ancestor: &PageImage) -> u64 {
        match Arc::ptr_eq(self.base(), ancestor.base()) {
            true => self.delta().bytes_beyond(ancestor.delta()),
            false => self.delta().bytes_beyond(&Tree::new()),
        }
    }
}

/// Error of adding a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError<K: Debug> {
    /// The new key's parent is not in the store.
    #[error("{key:?} has the parent {parent:?}, which is not in the store")]
    Parent {
        /// The new key.
        key: K,
        /// Parent that the caller gave.
        parent: K,
    },
    /// The store has the key with a different parent or cost.
    #[error("{0:?} is in the store with another parent or another cost")]
    Lineage(K),
}

/// Size of a store, and number of evictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStats {
    /// Number of keys, with or without a value.
    pub known: usize,
    /// Number of values that are present.
    pub present: usize,
    /// Sum of the bytes for which the values count, without the root's value.
    pub bytes: u64,
    /// Number of values evicted so far.
    pub evicted: u64,
}

/// Cache of values with a budget, and the tree of their keys.
#[derive(Debug, Clone)]
pub struct Store<K: Ord + Clone, V> {
    lineage: Lineage<K, V>,
    budget: u64,
    evicted: u64,
}

impl<K: Ord + Clone + Debug, V: Layered> Store<K, V> {
    /// Creates a store with the root's value. All other values may use `budget` bytes in addition.
    pub fn new(budget: u64, root: K, value: V) -> Store<K, V> {
        Store { lineage: Lineage::new(root, value), budget, evicted: 0 }
    }

    /// Adds a value with the cost of deriving it from the value of `parent`. Keeps an existing value. May evict other
    /// values.
    ///
    /// # Errors
    /// Returns an error if the parent is not in the store, or if the key is in the store with a different parent or
    /// cost.
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

    /// Returns the value of a key, if it is present. Does not affect evictions.
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

//! Values that can be derived again, kept within a budget of bytes.
//!
//! Moments form a tree: each except the roots was derived from its parent by work of a known cost. A store keeps this
//! tree (the *lineage*) permanently, and the values of some of its keys. When the values exceed the budget, the store
//! evicts first those that cost least to derive again, per freed byte. A caller that needs an evicted value gets it
//! derived again along the path from the nearest ancestor that has a value.
//!
//! - `lineage`: keys, parents, costs and values; `rank`: the order of eviction
//!
//! **Invariants.**
//! - Evictions are a function of the calls: the caller states costs (for example in instructions), nothing is measured,
//!   and ties are broken by key. Nevertheless **no result may depend on which values are present**, because the host
//!   decides the order in which workers call. A store is a cache: a value derived again must equal the evicted one, and
//!   the budget must affect nothing but time.
//! - Roots, pinned values and the value of the current call are not evicted, so these alone may exceed the budget.
//! - A key that has a child stays known, so that every known key can be derived.
//!
//! Not here: locks (put the store into one), and the derivation of values.

mod lineage;
mod rank;

use std::fmt::Debug;

use lineage::Lineage;

/// Error from an operation on a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError<K: Debug> {
    /// The key is unknown.
    #[error("{0:?} is not in the store")]
    Unknown(K),
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
    /// Other keys are derived from this one.
    #[error("{0:?} cannot be forgotten: others are derived from it")]
    Children(K),
    /// The key is pinned.
    #[error("{0:?} cannot be forgotten: it is pinned")]
    Pinned(K),
}

/// Error from deriving a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeriveError<K: Debug, E> {
    /// The key is unknown.
    #[error("{0:?} is not in the store")]
    Unknown(K),
    /// The caller's derivation failed.
    #[error("{key:?} cannot be derived again")]
    Failed {
        /// Key whose derivation failed: the requested key, or one between it and its nearest ancestor with a value.
        key: K,
        /// Cause.
        source: E,
    },
}

/// Size of a store, and its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStats {
    /// Number of known keys.
    pub known: usize,
    /// Number of values that are present.
    pub present: usize,
    /// Size of these values in bytes, as stated by the caller.
    pub bytes: u64,
    /// Number of values evicted so far.
    pub evicted: u64,
    /// Number of values derived again so far.
    pub derived: u64,
}

/// Cache of values under a budget, with their lineage.
#[derive(Debug, Clone)]
pub struct Store<K: Ord + Clone, V> {
    lineage: Lineage<K, V>,
    budget: u64,
    evicted: u64,
    derived: u64,
}

impl<K: Ord + Clone + Debug, V> Store<K, V> {
    /// Creates a store that keeps values of at most `budget` bytes.
    pub fn new(budget: u64) -> Store<K, V> {
        Store { lineage: Lineage::default(), budget, evicted: 0, derived: 0 }
    }

    /// Adds a value. `cost` is the cost of deriving it from `parent` (`None` for a root, whose cost is unused);
    /// `bytes` is the amount that dropping it would free. For a known key, the new value replaces any earlier one.
    ///
    /// # Errors
    /// Returns an error if the parent is unknown, or if the key is known with another parent or another cost.
    pub fn insert(
        &mut self,
        key: K,
        parent: Option<K>,
        cost: u64,
        bytes: u64,
        value: V,
    ) -> Result<(), StoreError<K>> {
        match self.lineage.node(&key) {
            Some(node) if node.parent != parent || node.cost != cost => {
                return Err(StoreError::Lineage(key));
            }
            Some(_) => {}
            None => match parent {
                Some(parent) if self.lineage.node(&parent).is_none() => {
                    return Err(StoreError::Parent { key, parent });
                }
                parent => self.lineage.add(key.clone(), parent, cost),
            },
        }
        self.lineage.put(&key, bytes, value);
        self.evict_for(&key);
        Ok(())
    }

    /// Returns the value of a key if it is present. Does not affect evictions.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.lineage.node(key)?.value.as_ref()
    }
    /// True if the key is known, so that [`Store::get_or_derive`] can return its value.
    pub fn knows(&self, key: &K) -> bool {
        self.lineage.node(key).is_some()
    }
    /// Returns the parent of a known key that is not a root.
    pub fn parent(&self, key: &K) -> Option<&K> {
        self.lineage.node(key)?.parent.as_ref()
    }

    /// Returns the value of a key, deriving it again if it is not present. `derive(parent, parent's value, child)` is
    /// called for each missing value, from the nearest ancestor with a value downward. Intermediate values are kept
    /// as far as the budget allows.
    ///
    /// # Errors
    /// Returns an error if the key is unknown, or the first error of `derive`.
    pub fn get_or_derive<E>(
        &mut self,
        key: &K,
        derive: &mut dyn FnMut(&K, &V, &K) -> Result<V, E>,
    ) -> Result<&V, DeriveError<K, E>> {
        let unknown = || DeriveError::Unknown(key.clone());
        let mut missing = self.lineage.missing_path(key).ok_or_else(unknown)?;
        while let Some(child) = missing.pop() {
            let node = self.lineage.node(&child).ok_or_else(unknown)?;
            let bytes = node.bytes;
            let parent = node.parent.as_ref().and_then(|parent| Some((parent, self.get(parent)?)));
            let (parent, from) = parent.ok_or_else(unknown)?;
            let value = derive(parent, from, &child)
                .map_err(|source| DeriveError::Failed { key: child.clone(), source })?;
            self.lineage.put(&child, bytes, value);
            self.derived += 1;
            self.evict_for(&child);
        }
        self.get(key).ok_or_else(unknown)
    }

    /// Keeps a value from being evicted until it is unpinned as often as it was pinned.
    ///
    /// # Errors
    /// Returns an error if the key is unknown or its value is not present.
    pub fn pin(&mut self, key: &K) -> Result<(), StoreError<K>> {
        if self.get(key).is_none() {
            return Err(StoreError::Unknown(key.clone()));
        }
        self.lineage.pin(key, true);
        Ok(())
    }
    /// Undoes one [`Store::pin`], and evicts values that exceed the budget.
    ///
    /// # Errors
    /// Returns an error if the key is unknown or not pinned.
    pub fn unpin(&mut self, key: &K) -> Result<(), StoreError<K>> {
        if self.lineage.node(key).is_none_or(|node| node.pins == 0) {
            return Err(StoreError::Unknown(key.clone()));
        }
        self.lineage.pin(key, false);
        self.evict(None);
        Ok(())
    }

    /// Removes a key permanently, and returns its value if it is present.
    ///
    /// # Errors
    /// Returns an error if the key is unknown, is pinned, or has known children.
    pub fn forget(&mut self, key: &K) -> Result<Option<V>, StoreError<K>> {
        let node = self.lineage.node(key).ok_or_else(|| StoreError::Unknown(key.clone()))?;
        if !node.children.is_empty() {
            return Err(StoreError::Children(key.clone()));
        }
        if node.pins > 0 {
            return Err(StoreError::Pinned(key.clone()));
        }
        Ok(self.lineage.remove(key))
    }

    /// Changes the budget and evicts values that exceed it.
    pub fn set_budget(&mut self, budget: u64) {
        self.budget = budget;
        self.evict(None);
    }
    /// Returns the budget in bytes.
    pub fn budget(&self) -> u64 {
        self.budget
    }
    /// Returns the size of the store and its counters.
    pub fn stats(&self) -> StoreStats {
        StoreStats {
            known: self.lineage.known(),
            present: self.lineage.present(),
            bytes: self.lineage.bytes(),
            evicted: self.evicted,
            derived: self.derived,
        }
    }
    /// Iterates over the keys whose values are present, ascending.
    pub fn present(&self) -> impl Iterator<Item = &K> {
        self.lineage.present_keys()
    }

    /// Evicts values that exceed the budget, except that of `key`.
    fn evict_for(&mut self, key: &K) {
        self.evict(Some(key));
    }

    fn evict(&mut self, keep: Option<&K>) {
        while self.lineage.bytes() > self.budget {
            let Some(victim) = self.lineage.cheapest(keep) else { return };
            self.lineage.take(&victim);
            self.evicted += 1;
        }
    }
}

#[cfg(test)]
mod tests;

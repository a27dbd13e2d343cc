//! Values that can be derived again, kept within a budget of bytes.
//!
//! Moments form a tree: each but the roots was derived from its parent by work of a known cost. A store knows this tree (the
//! *lineage*) for good and has the values of some of it. When they take more bytes than the budget, those go first whose
//! derivation would cost least for each byte that it frees; who asks for one that is gone gets it derived again, from the
//! nearest ancestor that is there, down the path.
//!
//! - `lineage`: keys, parents, costs and which values are there; `rank`: what is evicted before what
//!
//! **Invariants.**
//! - What is evicted is a function of the calls: costs are stated (instructions, say), never measured, and ties are broken by
//!   key. Nevertheless **no result may depend on what is there**: workers call in an order that their host decides. A store
//!   is a cache, a value derived again must equal the one that was evicted, and the budget must not show but in time.
//! - Roots, pinned values and the value of the call that is being answered are not evicted, so that what these take alone
//!   may be over the budget.
//! - A key that has a child stays known, so that whatever is known can be derived.
//!
//! Not here: locks (put it in one), and how a value is derived.

mod lineage;
mod rank;

use std::fmt::Debug;

use lineage::Lineage;

/// Why a store refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError<K: Debug> {
    /// The key is not known.
    #[error("{0:?} is not in the store")]
    Unknown(K),
    /// The parent of a new key is not known.
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
    /// Others are derived from it.
    #[error("{0:?} cannot be forgotten: others are derived from it")]
    Children(K),
    /// It is pinned.
    #[error("{0:?} cannot be forgotten: it is pinned")]
    Pinned(K),
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeriveError<K: Debug, E> {
    /// The key is not known.
    #[error("{0:?} is not in the store")]
    Unknown(K),
    /// The caller's derivation failed.
    #[error("{key:?} cannot be derived again")]
    Failed {
        /// What was to be derived: the key that was asked for, or one between it and an ancestor.
        key: K,
        /// Why not.
        source: E,
    },
}

/// What a store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStats {
    /// Keys known.
    pub known: usize,
    /// Values there.
    pub present: usize,
    /// Bytes that these take, as their owners stated.
    pub bytes: u64,
    /// Values evicted so far.
    pub evicted: u64,
    /// Values derived again so far.
    pub derived: u64,
}

/// The store.
#[derive(Debug, Clone)]
pub struct Store<K: Ord + Clone, V> {
    lineage: Lineage<K, V>,
    budget: u64,
    evicted: u64,
    derived: u64,
}

impl<K: Ord + Clone + Debug, V> Store<K, V> {
    /// A store that keeps values of at most `budget` bytes.
    pub fn new(budget: u64) -> Store<K, V> {
        Store { lineage: Lineage::default(), budget, evicted: 0, derived: 0 }
    }

    /// Add a value: `cost` is that of deriving it from `parent` (`None` for a root, whose cost means nothing), `bytes` is
    /// what dropping it would free. A key that is known gets this value in place of the one that it had, if it had one.
    ///
    /// # Errors
    /// When the parent is not known, or the key is with another parent or another cost.
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

    /// The value of a key, if it is there. Asking changes nothing.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.lineage.node(key)?.value.as_ref()
    }
    /// Whether the key is known: then [`Store::get_or_derive`] can get its value.
    pub fn knows(&self, key: &K) -> bool {
        self.lineage.node(key).is_some()
    }
    /// The parent of a key that is known and no root.
    pub fn parent(&self, key: &K) -> Option<&K> {
        self.lineage.node(key)?.parent.as_ref()
    }

    /// The value of a key, derived again if it is not there: `derive(parent, parent's value, child)` is called for each
    /// missing value from the nearest ancestor on down. What it makes on the way is kept as far as the budget allows.
    ///
    /// # Errors
    /// When the key is not known, or with the first error of `derive`.
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

    /// Keep a value from being evicted, until it was unpinned as often as it was pinned.
    ///
    /// # Errors
    /// When the key is not known or its value is not there.
    pub fn pin(&mut self, key: &K) -> Result<(), StoreError<K>> {
        if self.get(key).is_none() {
            return Err(StoreError::Unknown(key.clone()));
        }
        self.lineage.pin(key, true);
        Ok(())
    }
    /// Undo one [`Store::pin`]. What is over the budget then goes.
    ///
    /// # Errors
    /// When the key is not known or not pinned.
    pub fn unpin(&mut self, key: &K) -> Result<(), StoreError<K>> {
        if self.lineage.node(key).is_none_or(|node| node.pins == 0) {
            return Err(StoreError::Unknown(key.clone()));
        }
        self.lineage.pin(key, false);
        self.evict(None);
        Ok(())
    }

    /// Drop a key for good, with its value if that is there.
    ///
    /// # Errors
    /// When it is not known, is pinned, or has children that are known.
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

    /// Change the budget. What is over it goes.
    pub fn set_budget(&mut self, budget: u64) {
        self.budget = budget;
        self.evict(None);
    }
    /// The budget in bytes.
    pub fn budget(&self) -> u64 {
        self.budget
    }
    /// What is there.
    pub fn stats(&self) -> StoreStats {
        StoreStats {
            known: self.lineage.known(),
            present: self.lineage.present(),
            bytes: self.lineage.bytes(),
            evicted: self.evicted,
            derived: self.derived,
        }
    }
    /// The keys whose values are there, ascending.
    pub fn present(&self) -> impl Iterator<Item = &K> {
        self.lineage.present_keys()
    }

    /// Evict what is over the budget, but not `key`.
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

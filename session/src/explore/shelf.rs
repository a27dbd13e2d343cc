//! Moments of the tree, kept within a budget of memory.
//!
//! A moment that is gone is derived again from the nearest ancestor that is there, the root at worst: what is kept shows only in
//! how long that takes.

use std::sync::{Arc, Mutex, PoisonError};

use everett_explorer::search::Path;
use everett_snapshot::Store;
use everett_snapshot::store::StoreStats;
use everett_vmm::world::WorldMoment;

use super::stand::Stand;

/// A branch by its number, or the root.
type Key = Option<u64>;

/// Branches from the root moment to a place, with their paths.
pub type Way = [(u64, Path)];

/// The moments that are kept.
#[derive(Debug)]
pub struct Shelf {
    /// The root has none of its own: it is kept as long as its world is.
    store: Mutex<Store<Key, Option<Arc<Stand>>>>,
    root: WorldMoment,
}

impl Shelf {
    /// Nothing, on top of the root moment; at most so many bytes, roughly.
    #[must_use]
    pub fn new(root: WorldMoment, budget_bytes: u64) -> Shelf {
        let mut store = Store::new(budget_bytes);
        // The first key is refused by nobody.
        let _ = store.insert(None, None, 0, 0, None);
        Shelf { store: Mutex::new(store), root }
    }

    /// The moment of the last branch on a way that is kept, and how many branches lead there: 0 and none for the root.
    #[must_use]
    pub fn nearest(&self, way: &Way) -> (usize, Option<Arc<Stand>>) {
        let store = self.lock();
        let found = way.iter().enumerate().rev().find_map(|(i, (branch, _))| {
            let stand = store.get(&Some(*branch))?.as_ref()?;
            Some((i + 1, Some(Arc::clone(stand))))
        });
        found.unwrap_or((0, None))
    }

    /// Keep the moment at the end of the last branch of a way, which cost so many instructions.
    pub fn keep(&self, way: &Way, cost: u64, stand: Stand) -> Arc<Stand> {
        let stand = Arc::new(stand);
        let Some(((branch, _), before)) = way.split_last() else { return stand };
        let parent = before.last().map(|(branch, _)| *branch);
        // Memory is compared while others can use the store.
        let from = self.lock().get(&parent).cloned().flatten();
        let bytes = stand.bytes_beyond(from.as_ref().map_or(&self.root, |from| &from.world));
        // Whoever comes here has kept, or derived, what is before it; one that was not is no loss but of time.
        let _ = self.lock().insert(Some(*branch), Some(parent), cost, bytes, Some(Arc::clone(&stand)));
        stand
    }

    /// What is kept.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        self.lock().stats()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Store<Key, Option<Arc<Stand>>>> {
        // What is in it is whole after each call, whoever panicked.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

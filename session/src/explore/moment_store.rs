//! Moments of the tree, kept within a budget of memory.
//!
//! A dropped moment is derived again from its nearest ancestor that is kept, at worst the root. The choice of kept
//! moments only affects how long that takes.

use std::sync::{Arc, Mutex, PoisonError};

use everett_explorer::search::Path;
use everett_snapshot::store::StoreStats;
use everett_snapshot::{Layered, Store};
use everett_vmm::world::WorldMoment;

use super::branch_moment::BranchMoment;
use super::history_chain::HistoryChain;

/// Number of a branch, or `None` for the root.
type Key = Option<u64>;

/// Branches from the root moment to a place, each with its path.
pub type Way = [(u64, Path)];

/// Store of the kept moments.
#[derive(Debug)]
pub struct MomentStore(Mutex<Store<Key, KeptMoment>>);

/// A moment in the store.
#[derive(Debug, Clone)]
enum KeptMoment {
    /// The root moment, at which no history has begun.
    Root(Box<WorldMoment>),
    /// The moment at the end of a branch.
    Branch(Arc<BranchMoment>),
}

impl Layered for KeptMoment {
    fn bytes_beyond(&self, ancestor: &KeptMoment) -> u64 {
        match (self, ancestor) {
            (KeptMoment::Root(_), _) => 0,
            (KeptMoment::Branch(here), KeptMoment::Root(root)) => {
                here.bytes_beyond(root, &HistoryChain::default())
            }
            (KeptMoment::Branch(here), KeptMoment::Branch(there)) => {
                here.bytes_beyond(&there.world, &there.memory.chain)
            }
        }
    }
}

impl MomentStore {
    /// Creates a store with only the root moment and a budget of roughly `budget_bytes` bytes for the others.
    #[must_use]
    pub fn new(root: WorldMoment, budget_bytes: u64) -> MomentStore {
        MomentStore(Mutex::new(Store::new(budget_bytes, None, KeptMoment::Root(Box::new(root)))))
    }

    /// Returns the number of branches up to the last one on `way` whose moment is kept, and that moment; 0 and `None`
    /// for the root.
    #[must_use]
    pub fn nearest(&self, way: &Way) -> (usize, Option<Arc<BranchMoment>>) {
        let store = self.lock();
        let found = way.iter().enumerate().rev().find_map(|(i, (branch, _))| {
            let KeptMoment::Branch(at_moment) = store.get(&Some(*branch))? else { return None };
            Some((i + 1, Some(Arc::clone(at_moment))))
        });
        found.unwrap_or((0, None))
    }

    /// Keeps the moment at the end of the last branch of `way`; `cost` is the number of instructions that led to it.
    pub fn keep(&self, way: &Way, cost: u64, at_moment: BranchMoment) -> Arc<BranchMoment> {
        let at_moment = Arc::new(at_moment);
        let Some(((branch, _), before)) = way.split_last() else { return at_moment };
        let parent = before.last().map(|(branch, _)| *branch);
        // The store knows the parent, because the caller has kept or derived it. If it did not, it would refuse the
        // moment, which would only cost the time to derive it again.
        let _ = self.lock().insert(Some(*branch), parent, cost, KeptMoment::Branch(Arc::clone(&at_moment)));
        at_moment
    }

    /// Returns statistics of the store.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        self.lock().stats()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Store<Key, KeptMoment>> {
        // The store is consistent after each call, so a panic of another thread does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

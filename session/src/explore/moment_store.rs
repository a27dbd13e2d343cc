//! Store of moments of the tree, with a memory budget.
//!
//! The store may drop any moment except the root. A worker derives a dropped moment again from its nearest stored
//! ancestor. Dropping moments costs time and changes no result.

use std::sync::{Arc, Mutex, PoisonError};

use everett_explorer::search::Path;
use everett_snapshot::store::StoreStats;
use everett_snapshot::{Layered, Store};
use everett_vmm::world::WorldMoment;

use super::branch_moment::BranchMoment;
use super::history_chain::HistoryChain;

/// Number of the branch that ends at the moment, or `None` for the root moment.
type Key = Option<u64>;

/// Branches from the root moment to some moment, each with its number and its path.
pub type Way = [(u64, Path)];

/// Store of moments that all workers share.
#[derive(Debug)]
pub struct MomentStore(Mutex<Store<Key, KeptMoment>>);

/// A moment in the store.
#[derive(Debug, Clone)]
enum KeptMoment {
    /// Root moment. Its history of client operations is empty.
    Root(Box<WorldMoment>),
    /// Moment at the end of a branch.
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
    /// Creates a store with the root moment. Further moments may use about `budget_bytes` bytes.
    #[must_use]
    pub fn new(root: WorldMoment, budget_bytes: u64) -> MomentStore {
        MomentStore(Mutex::new(Store::new(budget_bytes, None, KeptMoment::Root(Box::new(root)))))
    }

    /// Finds the last branch on `way` whose moment is stored. Returns the number of branches of `way` up to and
    /// including that branch, and its moment. If no moment is stored, returns 0 and `None`, which stands for the root
    /// moment.
    #[must_use]
    pub fn nearest(&self, way: &Way) -> (usize, Option<Arc<BranchMoment>>) {
        let store = self.lock();
        let found = way.iter().enumerate().rev().find_map(|(i, (branch, _))| {
            let KeptMoment::Branch(at_moment) = store.get(&Some(*branch))? else { return None };
            Some((i + 1, Some(Arc::clone(at_moment))))
        });
        found.unwrap_or((0, None))
    }

    /// Stores the moment at the end of the last branch of `way`. `cost` is the number of instructions that the branch
    /// executed.
    pub fn keep(&self, way: &Way, cost: u64, at_moment: BranchMoment) -> Arc<BranchMoment> {
        let at_moment = Arc::new(at_moment);
        let Some(((branch, _), before)) = way.split_last() else { return at_moment };
        let parent = before.last().map(|(branch, _)| *branch);
        // An insertion fails only if the store does not know the parent, or knows the moment with another parent or
        // cost. A failure would do no harm: a worker would derive the moment again later.
        let _ = self.lock().insert(Some(*branch), parent, cost, KeptMoment::Branch(Arc::clone(&at_moment)));
        at_moment
    }

    /// Returns the numbers of stored and dropped moments and their memory.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        self.lock().stats()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Store<Key, KeptMoment>> {
        // A panic of another thread does no harm, because the store is consistent after each call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

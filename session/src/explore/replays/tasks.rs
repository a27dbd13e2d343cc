//! Branches to replay, which workers share.
//!
//! A branch is replayed from its parent's moment, so each branch runs once. The last task is taken first, so that few
//! moments are in memory at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::super::branch_moment::BranchMoment;
use super::Target;

/// Results that a branch inherits from the branch that it extends.
#[derive(Debug, Clone, Default)]
pub(super) struct Parent<I> {
    /// Moment at the parent's end. `None` at the root moment.
    pub(super) moment: Option<Arc<BranchMoment>>,
    /// Results of the parent that the job passes on.
    pub(super) inherited: I,
}

/// Branch to replay.
pub(super) struct Task<I> {
    pub(super) number: u64,
    pub(super) parent: Parent<I>,
}

/// Queue of the branches that can be replayed.
pub(super) struct Tasks<I> {
    children: BTreeMap<Option<u64>, Vec<u64>>,
    state: Mutex<State<I>>,
    changed: Condvar,
}

struct State<I> {
    ready: Vec<Task<I>>,
    /// Number of tasks that workers have taken and not finished.
    running: usize,
    ended: bool,
}

impl<I: Clone + Default> Tasks<I> {
    /// Creates the queue. Branches whose subtree has a finding come first.
    pub(super) fn new(targets: &BTreeMap<u64, Target>) -> Tasks<I> {
        let mut failing: BTreeSet<u64> = BTreeSet::new();
        let mut children: BTreeMap<Option<u64>, Vec<u64>> = BTreeMap::new();
        // A branch has a higher number than the branch that it extends.
        for (number, target) in targets.iter().rev() {
            if target.is_failing || failing.contains(number) {
                failing.insert(*number);
                failing.extend(target.from);
            }
            children.entry(target.from).or_default().push(*number);
        }
        // The last one is taken first.
        for all in children.values_mut() {
            all.sort_by_key(|number| (failing.contains(number), std::cmp::Reverse(*number)));
        }
        let state = State { ready: Vec::new(), running: 0, ended: false };
        let tasks = Tasks { children, state: Mutex::new(state), changed: Condvar::new() };
        tasks.extend(None, &Parent::default());
        tasks
    }

    /// Returns true if other branches extend a branch.
    pub(super) fn is_extended(&self, number: u64) -> bool {
        self.children.contains_key(&Some(number))
    }

    /// Adds the branches that extend a branch.
    pub(super) fn extend(&self, from: Option<u64>, parent: &Parent<I>) {
        let children = self.children.get(&from).into_iter().flatten();
        let tasks = children.map(|number| Task { number: *number, parent: parent.clone() });
        self.state().ready.extend(tasks);
        self.changed.notify_all();
    }

    /// Takes a task. Waits while other workers may still add some. `None` if there are no more.
    pub(super) fn take(&self) -> Option<Task<I>> {
        let mut state = self.state();
        loop {
            if state.ended {
                return None;
            }
            if let Some(task) = state.ready.pop() {
                state.running += 1;
                return Some(task);
            }
            if state.running == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reports that a taken task is finished.
    pub(super) fn finish(&self) {
        self.state().running -= 1;
        self.changed.notify_all();
    }

    /// Ends all workers.
    pub(super) fn end(&self) {
        self.state().ended = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State<I>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use everett_explorer::search::Path;

    use super::*;

    #[test]
    fn subtrees_with_findings_come_first_and_depth_first() {
        let target =
            |from, is_failing| Target { from, path: Path::default(), trail: String::new(), is_failing };
        let targets = [
            (0, target(None, false)),
            (1, target(None, false)),
            (2, target(Some(1), false)),
            (3, target(Some(1), false)),
            (4, target(Some(3), true)),
        ];
        let tasks: Tasks<()> = Tasks::new(&targets.into());
        let mut order = Vec::new();
        while let Some(task) = tasks.take() {
            order.push(task.number);
            tasks.extend(Some(task.number), &task.parent);
            tasks.finish();
        }
        assert_eq!(order, [1, 3, 4, 2, 0]);
        assert!(tasks.is_extended(3) && !tasks.is_extended(4));
        tasks.extend(None, &Parent::default());
        tasks.end();
        assert!(tasks.take().is_none());
    }
}

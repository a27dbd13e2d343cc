//! The branches of an exploration, in the order in which a search strategy chose them (the order of choices), and their
//! results.

use std::collections::BTreeMap;

use super::path::{Fork, Path, PathError};
use super::weights::{Weights, weight};

/// Moment from which a branch can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ForkPoint {
    /// The root moment.
    Root,
    /// The end of the branch with this number.
    After(u64),
}

/// Branch to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Position in the order of choices, from 0.
    pub number: u64,
    /// Moment at which the branch starts.
    pub from: ForkPoint,
    /// Path of the branch.
    pub path: Path,
}

/// Part of a branch's result that strategies may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Vtime of the moment at the branch's end, in nanoseconds. `None` if no branch can start there.
    pub open_ns: Option<u64>,
    /// Number of coverage points that this branch was the first to reach.
    pub reward: u64,
    /// Number of instructions that the branch executed.
    pub instructions: u64,
}

/// Branch of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Moment at which the branch starts.
    pub from: ForkPoint,
    /// Fork at which the branch leaves that moment.
    pub fork: Fork,
    /// Subtree of this branch, given as the number of the subtree's first branch. The first branch starts at the root
    /// moment.
    pub subtree: u64,
    /// Number of branches from the root moment to the end of this branch.
    pub depth: u32,
    /// Number of branches that start at the end of this branch.
    pub children: u64,
    /// Result of the branch. `None` until the result is merged. Results are merged in the order of choices, and
    /// strategies use only merged results.
    pub standing: Option<Standing>,
}

/// All chosen branches and their results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    root_ns: u64,
    root_children: u64,
    branches: Vec<Branch>,
    /// Numbers of the open branches, in the order in which their results were merged. A branch is open if other
    /// branches can start at its end.
    open: Vec<u64>,
    /// Index of each branch in `open`, or [`NOWHERE`] if the branch is not open.
    places: Vec<u32>,
    /// Weights of the open branches, in the order of `open`.
    weights: Weights,
    /// Numbers of the open branches by depth, in the order of `open`.
    by_depth: BTreeMap<u32, Vec<u64>>,
}

const NOWHERE: u32 = u32::MAX;

impl Tree {
    /// Creates a tree without branches. `root_ns` is the vtime of the root moment, in nanoseconds.
    #[must_use]
    pub fn new(root_ns: u64) -> Tree {
        Tree {
            root_ns,
            root_children: 0,
            branches: Vec::new(),
            open: Vec::new(),
            places: Vec::new(),
            weights: Weights::default(),
            by_depth: BTreeMap::new(),
        }
    }

    /// Returns the branches in the order of their numbers.
    #[must_use]
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// Returns the branch with this number, or `None` if the number is too high.
    #[must_use]
    pub fn branch(&self, number: u64) -> Option<&Branch> {
        self.branches.get(usize::try_from(number).ok()?)
    }

    /// Returns the number, branch and result of each open branch, in the order in which the results were merged. A
    /// branch is open if other branches can start at its end.
    pub fn open(&self) -> impl Iterator<Item = (u64, &Branch, Standing)> {
        self.open.iter().filter_map(|&number| {
            #[cfg(test)]
            super::weights::looked::at_one();
            let branch = self.branch(number)?;
            Some((number, branch, branch.standing?))
        })
    }

    /// Returns the number of open branches.
    #[must_use]
    pub fn open_count(&self) -> u64 {
        self.open.len() as u64
    }

    /// Returns the number of the open branch at this index, in the same order as [`Tree::open`].
    #[must_use]
    pub fn open_at(&self, place: u64) -> Option<u64> {
        self.open.get(usize::try_from(place).ok()?).copied()
    }

    /// Returns the sum of the open branches' weights. A branch's weight is its reward divided by (children + 1)^2,
    /// scaled.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.weights.total()
    }

    /// Returns the first open branch at which the running sum of weights exceeds `drawn`, or `None` if no sum does.
    #[must_use]
    pub fn open_at_weight(&self, drawn: u64) -> Option<u64> {
        self.open.get(self.weights.find(drawn)?).copied()
    }

    /// Returns the numbers of the open branches by depth. Depths without open branches are absent.
    #[must_use]
    pub fn open_by_depth(&self) -> &BTreeMap<u32, Vec<u64>> {
        &self.by_depth
    }

    /// Returns the number of branches that start at the root moment. Each of these branches is the first of a subtree.
    #[must_use]
    pub fn subtrees(&self) -> u64 {
        self.root_children
    }

    /// Returns the path from the root moment to a fork point.
    ///
    /// # Errors
    /// Returns an error if the path would have more than [`super::FORKS_MAX`] forks.
    pub fn path(&self, of: ForkPoint) -> Result<Path, PathError> {
        let mut forks = Vec::new();
        let mut place = of;
        while let ForkPoint::After(number) = place {
            let Some(branch) = self.branch(number) else { break };
            forks.push(branch.fork);
            place = branch.from;
        }
        forks.iter().rev().try_fold(Path::default(), |path, &fork| path.child(fork))
    }

    /// Adds the next branch. If no branch can start at `from`, the new branch starts at the root moment.
    pub(super) fn add(&mut self, from: ForkPoint) -> Choice {
        let number = self.branches.len() as u64;
        let from = if self.end_ns(from).is_some() { from } else { ForkPoint::Root };
        let vtime_ns = self.end_ns(from).unwrap_or(self.root_ns);
        let (depth, subtree, children) = match from {
            ForkPoint::After(parent) => {
                match usize::try_from(parent).ok().and_then(|i| self.branches.get_mut(i)) {
                    Some(parent) => (parent.depth + 1, parent.subtree, &mut parent.children),
                    None => (1, number, &mut self.root_children),
                }
            }
            ForkPoint::Root => (1, number, &mut self.root_children),
        };
        *children += 1;
        let fork = Fork { vtime_ns, child: *children };
        self.weigh_again(from);
        self.places.push(NOWHERE);
        self.branches.push(Branch { from, fork, subtree, depth, children: 0, standing: None });
        // The path is valid, because a branch is only open if its path has room for another fork.
        let path = self.path(ForkPoint::After(number)).unwrap_or_default();
        Choice { number, from, path }
    }

    /// Records a branch's result. The branch becomes open if other branches can start at its end.
    pub(super) fn settle(&mut self, number: u64, standing: Standing) {
        let Some(branch) = usize::try_from(number).ok().and_then(|i| self.branches.get_mut(i)) else {
            return;
        };
        // A child must fork later than its parent did, and a path has at most `FORKS_MAX` forks.
        let later = standing.open_ns.is_some_and(|at| at > branch.fork.vtime_ns);
        let room = (branch.depth as usize) < super::path::FORKS_MAX;
        let open_ns = standing.open_ns.filter(|_| later && room);
        branch.standing = Some(Standing { open_ns, ..standing });
        if open_ns.is_some() {
            let (depth, weight) = (branch.depth, weight(standing.reward, branch.children));
            if let Some(place) = usize::try_from(number).ok().and_then(|i| self.places.get_mut(i)) {
                *place = u32::try_from(self.open.len()).unwrap_or(NOWHERE);
            }
            self.open.push(number);
            self.weights.push(weight);
            self.by_depth.entry(depth).or_default().push(number);
        }
    }

    /// Lowers the weight of an open branch after it got another child.
    fn weigh_again(&mut self, from: ForkPoint) {
        let ForkPoint::After(number) = from else { return };
        let Some(i) = usize::try_from(number).ok() else { return };
        let place = self.places.get(i).copied().filter(|place| *place != NOWHERE);
        if let (Some(place), Some(Branch { children, standing: Some(standing), .. })) =
            (place, self.branches.get(i))
        {
            let before = weight(standing.reward, children.saturating_sub(1));
            self.weights.lower(place as usize, before - weight(standing.reward, *children));
        }
    }

    /// Returns the vtime of a fork point, in nanoseconds, or `None` if no branch can start there.
    fn end_ns(&self, place: ForkPoint) -> Option<u64> {
        match place {
            ForkPoint::Root => Some(self.root_ns),
            ForkPoint::After(number) => self.branch(number)?.standing?.open_ns,
        }
    }
}

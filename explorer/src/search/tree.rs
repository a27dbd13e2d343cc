//! The branches of an exploration in the order in which they were chosen, and what has become of them.

use std::collections::BTreeMap;

use super::path::{Fork, Path, PathError};
use super::weights::{Weights, weight};

/// A moment from which a branch can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The root moment.
    Root,
    /// The end of the branch of this number.
    After(u64),
}

/// A branch that is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its place in the order, from 0.
    pub number: u64,
    /// Where it begins.
    pub from: Place,
    /// Its path.
    pub path: Path,
}

/// What a strategy may know of a branch that was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The moment at its end, in nanoseconds of vtime, unless no branch can go on from there.
    pub open_ns: Option<u64>,
    /// How much it reached that no branch before it had.
    pub reward: u64,
    /// What it cost, in instructions.
    pub instructions: u64,
}

/// A branch of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Where it began.
    pub from: Place,
    /// Where it left that.
    pub fork: Fork,
    /// The branch from the root moment that it goes on from, itself if it is one.
    pub subtree: u64,
    /// Branches from the root moment to here.
    pub depth: u32,
    /// Branches that go on from it.
    pub children: u64,
    /// What has become of it, once that may be known.
    pub standing: Option<Standing>,
}

/// All branches that were chosen. See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    root_ns: u64,
    root_children: u64,
    branches: Vec<Branch>,
    /// Those from which others can go on, in the order in which that became known.
    open: Vec<u64>,
    /// By branch, its place in that order; [`NOWHERE`] if it has none.
    places: Vec<u32>,
    /// What those weigh, in the same order.
    weights: Weights,
    /// Those of each depth, in the same order.
    by_depth: BTreeMap<u32, Vec<u64>>,
}

const NOWHERE: u32 = u32::MAX;

impl Tree {
    /// A root moment at this vtime, and no branch.
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

    /// The branches by their numbers.
    #[must_use]
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// A branch by its number.
    #[must_use]
    pub fn branch(&self, number: u64) -> Option<&Branch> {
        self.branches.get(usize::try_from(number).ok()?)
    }

    /// Branches from whose end others can go on, in the order in which that became known.
    pub fn open(&self) -> impl Iterator<Item = (u64, &Branch, Standing)> {
        self.open.iter().filter_map(|&number| {
            #[cfg(test)]
            super::weights::looked::at_one();
            let branch = self.branch(number)?;
            Some((number, branch, branch.standing?))
        })
    }

    /// How many branches there are from whose end others can go on.
    #[must_use]
    pub fn open_count(&self) -> u64 {
        self.open.len() as u64
    }

    /// One of these, by its place in their order.
    #[must_use]
    pub fn open_at(&self, place: u64) -> Option<u64> {
        self.open.get(usize::try_from(place).ok()?).copied()
    }

    /// The sum of their weights: of what each reached first, divided by the square of one more than how many go on from it.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.weights.total()
    }

    /// The first of these up to which weights have a sum of more than `drawn`.
    #[must_use]
    pub fn open_at_weight(&self, drawn: u64) -> Option<u64> {
        self.open.get(self.weights.find(drawn)?).copied()
    }

    /// These of each depth at which there are some, with the depth.
    #[must_use]
    pub fn open_by_depth(&self) -> &BTreeMap<u32, Vec<u64>> {
        &self.by_depth
    }

    /// Branches that go on from the root moment: each heads a subtree.
    #[must_use]
    pub fn subtrees(&self) -> u64 {
        self.root_children
    }

    /// The path of a branch.
    ///
    /// # Errors
    /// It is longer than paths are.
    pub fn path(&self, of: Place) -> Result<Path, PathError> {
        let mut forks = Vec::new();
        let mut place = of;
        while let Place::After(number) = place {
            let Some(branch) = self.branch(number) else { break };
            forks.push(branch.fork);
            place = branch.from;
        }
        forks.iter().rev().try_fold(Path::default(), |path, &fork| path.child(fork))
    }

    /// Add the next branch; from the root moment if there is nothing to go on from at `from`.
    pub(super) fn add(&mut self, from: Place) -> Choice {
        let number = self.branches.len() as u64;
        let from = if self.end_ns(from).is_some() { from } else { Place::Root };
        let vtime_ns = self.end_ns(from).unwrap_or(self.root_ns);
        let (depth, subtree, children) = match from {
            Place::After(parent) => match usize::try_from(parent).ok().and_then(|i| self.branches.get_mut(i))
            {
                Some(parent) => (parent.depth + 1, parent.subtree, &mut parent.children),
                None => (1, number, &mut self.root_children),
            },
            Place::Root => (1, number, &mut self.root_children),
        };
        *children += 1;
        let fork = Fork { vtime_ns, child: *children };
        self.weigh_again(from);
        self.places.push(NOWHERE);
        self.branches.push(Branch { from, fork, subtree, depth, children: 0, standing: None });
        // What can be gone on from has a path with room for one more.
        let path = self.path(Place::After(number)).unwrap_or_default();
        Choice { number, from, path }
    }

    /// What has become of a branch.
    pub(super) fn settle(&mut self, number: u64, standing: Standing) {
        let Some(branch) = usize::try_from(number).ok().and_then(|i| self.branches.get_mut(i)) else {
            return;
        };
        // Each child is later than what it goes on from, and paths have an end.
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

    /// One more branch goes on from a place.
    fn weigh_again(&mut self, from: Place) {
        let Place::After(number) = from else { return };
        let Some(i) = usize::try_from(number).ok() else { return };
        let place = self.places.get(i).copied().filter(|place| *place != NOWHERE);
        if let (Some(place), Some(Branch { children, standing: Some(standing), .. })) =
            (place, self.branches.get(i))
        {
            let before = weight(standing.reward, children.saturating_sub(1));
            self.weights.lower(place as usize, before - weight(standing.reward, *children));
        }
    }

    /// When the moment of a place is, if branches can go on from there.
    fn end_ns(&self, place: Place) -> Option<u64> {
        match place {
            Place::Root => Some(self.root_ns),
            Place::After(number) => self.branch(number)?.standing?.open_ns,
        }
    }
}

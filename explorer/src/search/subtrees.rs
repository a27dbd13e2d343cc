//! Counts of branches and coverage points in each subtree, updated while a search runs. A subtree is a branch that
//! begins at the root moment, with all branches that extend it.
//!
//! An update takes time proportional to the branches that were added or got a result since the last update. A display
//! can therefore follow a search of any length.

use std::collections::BTreeMap;

use super::tree::{Branch, ForkPoint, Tree};
use super::weights::weight;

/// Highest depth with its own count. A branch's depth is the number of branches from the root moment to its end. Deeper
/// branches are counted at this depth.
pub const DEPTH_MAX: usize = 64;

/// Counts of all subtrees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subtrees {
    by_first: BTreeMap<u64, Subtree>,
    /// Number of branches that the tree had at the last update. A branch's weight depends on its number of children,
    /// and only these branches count as children.
    added: u64,
    /// Number of branches whose results are counted. Results are counted in the order of the branches' numbers.
    settled: u64,
}

/// Counts of one subtree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subtree {
    /// Number of branches with a result at each depth, from depth 1. At most [`DEPTH_MAX`] entries.
    pub by_depth: Vec<u64>,
    /// Number of coverage points that the subtree's branches were the first to reach.
    pub new_points: u64,
    /// Sum of the weights of the subtree's open branches, i.e. branches that can be extended. A branch's weight grows
    /// with its new coverage points and falls with its number of children. [`Tree::weight`] is the sum over all
    /// subtrees. Strategy `novelty` extends a subtree with a probability proportional to this sum.
    pub weight: u64,
    /// Highest number among the subtree's branches that have a result.
    pub last: u64,
}

impl Subtree {
    /// Returns the number of branches with a result.
    #[must_use]
    pub fn branches(&self) -> u64 {
        self.by_depth.iter().sum()
    }
}

impl Subtrees {
    /// Returns the counts of each subtree, by the number of the subtree's first branch.
    #[must_use]
    pub fn all(&self) -> &BTreeMap<u64, Subtree> {
        &self.by_first
    }

    /// Updates the counts. Every call must pass the same tree.
    pub fn update(&mut self, tree: &Tree) {
        let branches = tree.branches();
        // For each branch whose result was counted before this update, the number of its new children.
        let mut children: BTreeMap<u64, u64> = BTreeMap::new();
        for branch in from(branches, self.added) {
            if let ForkPoint::After(parent) = branch.from
                && parent < self.settled
            {
                *children.entry(parent).or_default() += 1;
            }
        }
        self.added = branches.len() as u64;
        for (parent, new) in children {
            let Some(branch) = tree.branch(parent) else { continue };
            let now = weight_of(branch, branch.children);
            let before = weight_of(branch, branch.children.saturating_sub(new));
            if let Some(subtree) = self.by_first.get_mut(&branch.subtree) {
                subtree.weight = (subtree.weight + now).saturating_sub(before);
            }
        }
        for branch in from(branches, self.settled) {
            let Some(standing) = branch.standing else { break };
            let subtree = self.by_first.entry(branch.subtree).or_default();
            let depth = (branch.depth as usize).clamp(1, DEPTH_MAX);
            if subtree.by_depth.len() < depth {
                subtree.by_depth.resize(depth, 0);
            }
            if let Some(at_depth) = subtree.by_depth.get_mut(depth - 1) {
                *at_depth += 1;
            }
            subtree.new_points = subtree.new_points.saturating_add(standing.reward);
            subtree.weight = subtree.weight.saturating_add(weight_of(branch, branch.children));
            subtree.last = self.settled;
            self.settled += 1;
        }
    }
}

/// Returns the branches with this number or a higher one.
fn from(branches: &[Branch], number: u64) -> &[Branch] {
    usize::try_from(number).ok().and_then(|number| branches.get(number..)).unwrap_or_default()
}

/// Returns the weight that a branch would have with this number of children. Returns 0 if no branch can start at its
/// end.
fn weight_of(branch: &Branch, children: u64) -> u64 {
    let open = branch.standing.filter(|standing| standing.open_ns.is_some());
    open.map_or(0, |standing| weight(standing.reward, children))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::search::Standing;

    /// Computes the counts from the whole tree.
    fn naive(tree: &Tree) -> BTreeMap<u64, (u64, u64, u64)> {
        let mut all: BTreeMap<u64, (u64, u64, u64)> = BTreeMap::new();
        for branch in tree.branches() {
            let Some(standing) = branch.standing else { continue };
            let (branches, points, weight) = all.entry(branch.subtree).or_default();
            *branches += 1;
            *points += standing.reward;
            *weight += weight_of(branch, branch.children);
        }
        all
    }

    proptest! {
        #[test]
        fn figures_equal_those_of_the_whole_tree(
            steps in prop::collection::vec((0..4u8, any::<prop::sample::Index>(), 0..9u64), 1..200),
        ) {
            let mut tree = Tree::new(10);
            let (mut subtrees, mut settled) = (Subtrees::default(), 0);
            for (step, at, reward) in steps {
                match step {
                    0 => drop(tree.add(ForkPoint::Root)),
                    1 if tree.open_count() > 0 => {
                        let at = tree.open_at(at.index(tree.open_count() as usize) as u64).unwrap();
                        tree.add(ForkPoint::After(at));
                    }
                    2 if settled < tree.branches().len() as u64 => {
                        let end = tree.branch(settled).unwrap().fork.vtime_ns + 1;
                        let open_ns = (reward != 3).then_some(end);
                        tree.settle(settled, Standing { open_ns, reward, instructions: 1 });
                        settled += 1;
                    }
                    _ => subtrees.update(&tree),
                }
            }
            subtrees.update(&tree);
            let figures: BTreeMap<u64, _> =
                subtrees.all().iter().map(|(n, s)| (*n, (s.branches(), s.new_points, s.weight))).collect();
            prop_assert_eq!(&figures, &naive(&tree));
            prop_assert_eq!(figures.values().map(|(_, _, weight)| weight).sum::<u64>(), tree.weight());
        }
    }
}

//! The search: a tree of timelines that grows from a root moment. A moment is a snapshot of the whole world, and a
//! branch is a piece of a timeline that starts at a moment.
//!
//! K is the maximum number of branches in flight, i.e. of branches that were chosen and whose result is not yet merged.
//! The order of choices depends only on the seed, the strategy, K and the results of branches.
//!
//! - `path`: position of a timeline in the tree, also as text
//! - `tree`: the branches in the order of choices
//! - [`subtrees`]: counts of branches and coverage points in each subtree, for displays
//! - `weights`: sums of branches' weights, from which a strategy draws a branch
//! - `window`: when the next branch is chosen, and the results that the choice may use
//! - [`strategy`]: the choice of where the next branch starts
//!
//! Not here: how a branch is run and judged.
//!
//! **Invariants.**
//! - Choice n depends only on the seed, the strategy and the results of choices up to n - K.
//! - A search of fewer branches is a prefix of a search of more branches.

mod path;
pub mod strategy;
pub mod subtrees;
mod tree;
mod weights;
mod window;

pub use path::{FORKS_MAX, Fork, Path, PathError};
pub use tree::{Branch, Choice, ForkPoint, Standing, Tree};
pub use window::{Ledger, Next, Search};

#[cfg(test)]
mod tests;

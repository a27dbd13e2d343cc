//! The search: a tree of timelines that grows from a root moment, in an order that depends on nothing but the seed.
//!
//! - `path`: where a timeline lies in the tree, as text
//! - `tree`: the branches in the order of choice
//! - `weights`: how much the branches of the tree weigh, with sums that are kept
//! - `window`: what is chosen when, and what is known by then
//! - [`strategy`]: from where the next branch goes on
//!
//! Not here: how a branch is run, and what is made of it.
//!
//! **Invariants.**
//! - Choice n depends on the seed, the strategy and the results of choices up to n - K, and on nothing else.
//! - A search of fewer branches is the beginning of one of more.

mod path;
pub mod strategy;
mod tree;
mod weights;
mod window;

pub use path::{FORKS_MAX, Fork, Path, PathError};
pub use tree::{Branch, Choice, Place, Standing, Tree};
pub use window::{Ledger, Next, Search};

#[cfg(test)]
mod tests;

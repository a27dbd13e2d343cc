//! How often a bug is found over the runs of one world, and how sure one can be that it is gone.
//!
//! - `interval`: bounds of a rate from a number of hits; `outlook`: survival probabilities of past and of future runs
//!
//! The definitions are those of [`Findability`](everett_explorer::coverage::statistics::Findability): a subtree counts
//! once, with its time until its first hit, or with its whole time if it has no hit. T is the sum over the subtrees; d
//! is the number of subtrees with a hit. Times are in CPU nanoseconds or in instructions.
//!
//! Not here: where the times come from (`crate::data`), and how they are shown (`crate::page`).
//!
//! **Invariant.** These figures are for display, so they may be floats. No decision depends on them.

mod interval;
mod outlook;

pub use interval::mean_between;
pub use outlook::{Clean, Observation, Outlook, PROJECTED_MAX, Terms, outlook};

#[cfg(test)]
mod tests;

//! How often a bug is found over the runs of one world, and how sure it is that the bug is gone.
//!
//! - `interval`: confidence bounds on the mean time between hits (occurrences of the bug)
//! - `outlook`: how likely a bug that is still there stays unseen in past and future runs
//!
//! The definitions are those of [`Findability`](everett_explorer::coverage::statistics::Findability). A subtree
//! consists of a branch at the root moment and all branches that descend from it. A subtree counts once, with its time
//! up to its first hit, or with its whole time if it has no hit. T is the sum of these times; d is the number of
//! subtrees with a hit. Times are in CPU nanoseconds or in instructions.
//!
//! Not here: the source of the times (`crate::data`), and how the numbers are shown (`crate::page`).
//!
//! **Invariant.** No decision of Everett depends on these numbers, so they may be floats.

mod interval;
mod outlook;

pub use interval::mean_between;
pub use outlook::{Clean, Observation, Outlook, PROJECTED_MAX, Terms, outlook};

#[cfg(test)]
mod tests;

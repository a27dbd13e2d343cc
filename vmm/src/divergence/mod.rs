//! Comparison of two runs: trails of digests, and the search for the first difference.
//!
//! - `trail`: digests at fixed vtimes
//! - `diff`: named differences between the states of two machines
//! - `bisect`: the first instruction at which two runs differ

pub mod bisect;
pub mod diff;
pub mod trail;

#[cfg(test)]
mod tests;

pub use bisect::{Cause, Divergence, Side, first_difference};
pub use diff::{Difference, differences};
pub use trail::Trail;

//! Two runs side by side: trails of digests, and the search for the first difference.
//!
//! - `trail`: digests at fixed vtimes
//! - `diff`: two machines' states, named and side by side
//! - `bisect`: the first instruction at which two runs part

pub mod bisect;
pub mod diff;
pub mod trail;

#[cfg(test)]
mod tests;

pub use bisect::{Cause, Divergence, Side, first_difference};
pub use diff::{Difference, differences};
pub use trail::Trail;

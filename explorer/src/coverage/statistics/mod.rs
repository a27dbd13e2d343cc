//! Estimates of unseen coverage points and bugs, from the number of points that were reached and the number of branches
//! that reached each.
//!
//! - `richness`: estimated number of points that no branch reached
//! - `growth`: growth of the number of points
//! - `clean`: upper bound on the probability of an event that never occurred
//! - `findability`: time to find a bug, and confidence that a bug is gone
//! - `pct`: lower bound on the probability that a test with random priorities of nodes finds a bug
//!
//! Not here: the points (`super::cover`).
//!
//! **Invariant.** A number that may influence which branch is chosen is computed with integers. Floats are only for
//! display, because their logarithms and powers differ between hosts.

mod clean;
mod findability;
mod growth;
mod pct;
mod richness;

pub use clean::{CONFIDENCE, probability_below, probability_below_at};
pub use findability::{Findability, Prior, Subtree};
pub use growth::{Growth, Sample};
pub use pct::Pct;
pub use richness::{Fraction, Incidence};

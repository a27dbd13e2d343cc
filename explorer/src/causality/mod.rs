//! Causality of a finding: the step of its timeline at which the finding became likely.
//!
//! The likelihood at a vtime is the share of *futures* that show the finding. A future is a timeline that has the
//! finding's past up to that vtime, and then random streams, and faults, of its own. Along the timeline the likelihood
//! rises from the base rate at the root moment to 1 at the finding. It jumps where the finding was decided.
//!
//! - [`likelihood`]: the evidence of counts, in integers; `log2`: logarithms
//! - [`search`]: the choice of the vtimes from which futures start, and the step where the likelihood jumps
//! - [`cuts`]: the vtimes at which a timeline can be cut
//! - [`result`](mod@result): the result, as it is kept in the run directory
//!
//! Not here: running futures (`everett-session`), and how the result is shown (`everett-report`).
//!
//! **Invariant.** The choices are a function of the cuts, the limits and the results of earlier batches. Host time only
//! decides after which future the search ends.

pub mod cuts;
pub mod likelihood;
mod log2;
pub mod result;
pub mod search;

pub use cuts::Cuts;
pub use result::{Causality, CausalityEnd, CausalityError, Code, Count, Jump, Point, Step, StepKind, Vary};
pub use search::{Ask, Batch, JumpInterval, Limits, Search};

#[cfg(test)]
mod tests;

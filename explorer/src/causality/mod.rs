//! Causality of a finding: the step of the finding's timeline at which the finding became likely.
//!
//! A *future* is a timeline that follows the finding's timeline up to some vtime, and from there on draws its own
//! random numbers and faults. The likelihood at a vtime is the share of futures from there that show the finding. Along
//! the timeline the likelihood rises from the base rate at the root moment, where the exploration began, to 1 at the
//! finding. It jumps at the step (the observed event) that decided the finding.
//!
//! - [`likelihood`]: computes, in integer arithmetic, how well a hypothesis explains the number of futures that showed
//!   the finding; an example is the hypothesis that the likelihood is the same at two vtimes
//! - `log2`: logarithms in integer arithmetic
//! - [`search`]: the choice of the vtimes from which futures start, and the step where the likelihood jumps
//! - [`cuts`]: the vtimes at which a timeline can be forked
//! - [`result`](mod@result): the result, in the form that the run directory stores
//!
//! Not here: the execution of futures (`everett-session`), and the display of the result (`everett-report`).
//!
//! **Invariant.** The search starts futures in batches. The vtimes chosen for a batch are a function of the cuts, the
//! limits and the results of earlier batches. Host time can only end the search early.

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

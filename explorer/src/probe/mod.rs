//! Probes: values at places of programs that an exploration observes on each branch, as properties and as state variables.
//!
//! - `limits`: bounds
//! - `config`: probes as a world file declares them
//! - `error`: errors in declarations
//! - `check`: the check of declarations
//! - `recorded`: probes in the world that a run directory records
//! - `tally`: numbers about a probe
//! - `state`: what a branch inherits from its parent, and the judgement of each hit
//!
//! Not here: the places in programs and the evaluation of expressions, which need a machine (`everett-session`).
//!
//! **Invariants.**
//! - The effects of a hit are a function of the state before it, of the hit and of the declarations.
//! - A value that cannot be read has no effect, so it is never evidence of a violation.

mod check;
mod config;
mod error;
pub mod limits;
mod recorded;
mod state;
mod tally;

pub use check::check;
pub use config::{ProbeConfig, Scope};
pub use error::{ProbeError, ProbeProblem};
pub use recorded::{Recorded, recorded};
pub use state::{Effects, ProbeHit, ProbeState, Process};
pub use tally::Tally;

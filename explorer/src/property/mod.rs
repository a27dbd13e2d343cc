//! Properties: what must not be seen on a timeline, judged event by event, and what must.
//!
//! - `limits`: every bound by name
//! - `config`: what a world file declares; `rule`: a declared property that was checked; `problem`: what can be wrong
//! - [`builtin`]: properties that every world has; `kernel`: what Linux prints when something is wrong with it, or with a
//!   program; `excuse`: what of that faults explain
//! - `properties`: all that hold in a world; `event`: what is judged; `judge` and `state`: judging, and what a child
//!   timeline inherits; `hit`: what was seen
//!
//! Not here: operation histories ([`crate::history`]), what a workload's own checks say, and when a world is calm: the caller
//! tells.
//!
//! **Invariants.**
//! - What is judged is a function of the [`Properties`], the [`JudgeState`] it started from and the events in their order. A
//!   timeline that is cut in pieces, each started from the last one's state, has the hits that it has in one piece.
//! - No two hits of a path from the root have the same property and signature.
//! - Texts that come from a world are of any kind and length: memory is bounded, and nothing fails.

pub mod builtin;
mod config;
mod event;
mod excuse;
mod hit;
mod judge;
mod kernel;
pub mod limits;
mod problem;
mod properties;
mod rule;
mod state;

pub use config::PropertyConfig;
pub use event::{Event, What};
pub use excuse::{Excuses, WATCHDOG_NS};
pub use hit::Hit;
pub use judge::Judge;
pub use kernel::{Trouble, trouble};
pub use problem::{PropertyError, PropertyProblem};
pub use properties::Properties;
pub use state::JudgeState;

#[cfg(test)]
mod tests;

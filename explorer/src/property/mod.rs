//! Properties: conditions on a timeline's events, judged event by event.
//!
//! - `limits`: bounds
//! - `config`: properties as a world file declares them; `rule`: a declared property after its checks; `problem`:
//!   errors of declarations; [`violation_text`]: texts of violations
//! - [`builtin`]: properties that every world has; `kernel`: problems that Linux reports on its console; `excuse`:
//!   reports that faults explain
//! - `record`: records of several lines, such as tracebacks, which are one event
//! - `properties`: all properties of a world; `event`: events to be judged; `judge` and `state`: judging, and the state
//!   that a child timeline inherits; `hit`: violations
//!
//! Not here: operation histories (`everett-linearizability`), results of a workload's own checks, and the decision that
//! all faults have ended. The caller reports them.
//!
//! **Invariants.**
//! - Results are a function of the [`Properties`], the initial [`JudgeState`] and the events in their order. A timeline
//!   that is cut in pieces, each started from the state of the previous one, has the same hits as in one piece. Only a
//!   record of several lines ends where a piece ends.
//! - No two hits of a path from the root have the same property and signature.
//! - Texts from a world can be of any kind and length. Memory is bounded, and judging cannot fail.

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
mod record;
mod rule;
mod state;
pub mod violation_text;

pub use config::PropertyConfig;
pub use event::{Event, What};
pub use excuse::{Excuses, WATCHDOG_NS};
pub use hit::PropertyHit;
pub use judge::Judge;
pub use kernel::{Trouble, trouble};
pub use problem::{PropertyError, PropertyProblem};
pub use properties::Properties;
pub use state::JudgeState;

#[cfg(test)]
mod tests;

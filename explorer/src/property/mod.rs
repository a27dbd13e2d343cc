//! Properties: conditions on a timeline's events, checked event by event.
//!
//! - `limits`: bounds
//! - `config`: properties as a world file declares them
//! - `rule`: properties that a world file declares, after their validation
//! - `error`: errors in declarations
//! - [`violation_text`]: descriptions of violations
//! - [`builtin`]: properties that every world has
//! - `kernel`: problems that Linux reports on its console
//! - `excuse`: faults that explain a problem which a node reports, so that the problem is not a violation
//! - `record`: records of several lines that are one event, such as tracebacks
//! - `properties`: all properties of a world
//! - `event`: events of a timeline, which the judge searches for violations
//! - `judge`: finds the violations in the events of one timeline
//! - `state`: the judge's state, which a child timeline inherits
//! - `hit`: hits, i.e. violations that were found, and their signatures. Hits of one property that differ only in
//!   numbers, times, ids or nodes have the same signature.
//!
//! Not here: operation histories (`everett-linearizability`), results of a workload's own checks, and the decision that
//! all faults have ended. The caller reports these to the judge.
//!
//! **Invariants.**
//! - The hits are a function of the [`Properties`], the initial [`JudgeState`] and the events in their order. A
//!   timeline can be cut into pieces, each of which starts from the state of the piece before. The pieces have the same
//!   hits as the whole timeline, except that a cut ends a record of several lines.
//! - Two hits on one path from the root moment differ in their property or their signature.
//! - Texts from a world can have any content and length. Memory is bounded, and judging cannot fail.

pub mod builtin;
mod config;
mod error;
mod event;
mod excuse;
mod hit;
mod judge;
mod kernel;
pub mod limits;
mod properties;
mod record;
mod rule;
mod state;
pub mod violation_text;

pub use config::PropertyConfig;
pub use error::{PropertyError, PropertyProblem};
pub use event::{Event, What};
pub use excuse::{Excuses, WATCHDOG_NS};
pub use hit::PropertyHit;
pub use judge::Judge;
pub use kernel::{Trouble, trouble};
pub use properties::Properties;
pub use state::JudgeState;

#[cfg(test)]
mod tests;

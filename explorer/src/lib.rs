//! The part of exploration that needs no machine: fault plans, the search tree, coverage, checks of results, run directories.
//!
//! Map:
//! - [`plan`]: reading, checking, writing, walking and drawing fault plans
//! - [`config`]: the `[explore]` table of a world file; [`fate`]: fault plan and end of the timeline at a path
//! - [`search`]: the tree of timelines and the choice of the next branch
//! - [`expedition`]: the course of an exploration: choosing branches, handing them out, recording and merging results
//! - [`length_defaults`]: number of branches in flight and share of checked branches, by an exploration's length
//! - [`coverage`]: points that timelines reached, and estimates of what is unseen
//! - [`composer`]: the schedule of a test template's commands
//! - [`property`]: checks of logs and consoles (`everett-linearizability` checks clients' histories)
//! - [`sdk`]: lines that programs send through the SDK
//! - [`run`]: the run directory and the state derived from it
//! - [`causality`]: the step of a finding's timeline at which the finding became likely
//! - [`shrink`]: reduction to the fewest faults that still reproduce a finding
//! - [`suggest`]: suggestions for misspelt names; `pattern`: name patterns and regular expressions of world files;
//!   `text`: texts of bounded length
//!
//! Not here: applying faults (`everett-vmm`), running timelines and reading world files (`everett-session`), reports
//! (`everett-report`), terminals (`everett/`).
//!
//! **Invariants.**
//! - Decisions are functions of the input and of the world's random streams. They use no host time, no unordered map
//!   and no floats. Two kinds of floats are left: figures that are only shown (`coverage::statistics`,
//!   `causality::result`, `plan::draw::guarantee`), and numbers that programs send through the SDK.
//! - Text is untrusted. Any bytes are parsed to a value or to errors that name their place, in bounded memory.

// `run/tests/sample.rs` is also compiled in tests of `everett-report`, so it names this crate as other crates do.
#[cfg(test)]
extern crate self as everett_explorer;

pub mod causality;
pub mod composer;
pub mod config;
pub mod coverage;
pub mod expedition;
pub mod fate;
pub mod length_defaults;
mod pattern;
pub mod plan;
pub mod property;
pub mod run;
pub mod sdk;
pub mod search;
pub mod shrink;
pub mod suggest;
mod text;

//! The part of exploration that needs no machine: fault plans, the search tree, coverage, properties, run directories.
//!
//! Map:
//! - [`plan`]: fault plans: drawing, parsing, checking, printing and stepping through them
//! - [`config`]: the `[explore]` table of a world file
//! - [`fate`]: computes from a path the fault plan of its timeline, and where the path's last branch ends
//! - [`search`]: the tree of timelines and the choice of the next branch
//! - [`expedition`]: the main loop: chooses branches, hands them out, records and merges their results
//! - [`length_defaults`]: defaults that depend on an exploration's length: how many branches are chosen before the
//!   first result is known, and what share of the branches end with checks
//! - [`coverage`]: the states, faults and orders of events that timelines reached, and estimates of how many no
//!   timeline has reached yet
//! - [`composer`]: decides when the commands of a test template start
//! - [`property`]: finds violations of properties in logs and on consoles (`everett-linearizability` checks clients'
//!   histories)
//! - [`probe`]: values at places of programs, as properties and as state variables
//! - [`sdk`]: parses lines that programs send through the SDK
//! - [`run`]: the run directory and the results computed from it
//! - [`causality`]: the step of a finding's timeline at which the finding became likely
//! - [`reached_code`]: functions and source lines that branches reached
//! - [`shrink`]: removes faults from a finding's plan as long as the finding still occurs
//! - [`suggest`]: suggestions for misspelt names
//! - `pattern`: name patterns and regular expressions of world files
//! - `text`: texts of bounded length
//!
//! Not here: the application of faults (`everett-vmm`), the execution of timelines and the reading of world files
//! (`everett-session`), reports (`everett-report`), terminal output (`everett/`).
//!
//! **Invariants.**
//! - Decisions are functions of the input and of the world's random streams. They use no host time, no unordered map
//!   and no floats. Floats occur only in displayed figures (`coverage::statistics`, `causality::result`,
//!   `plan::draw::guarantee`) and in numbers that programs send through the SDK.
//! - All text is untrusted. A parser turns any bytes into a value or into errors that name their position, in bounded
//!   memory.

// `run/tests/sample.rs` is also compiled into tests of `everett-report`, so it uses this crate's external name.
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
pub mod probe;
pub mod property;
pub mod reached_code;
pub mod run;
pub mod sdk;
pub mod search;
pub mod shrink;
pub mod suggest;
mod text;

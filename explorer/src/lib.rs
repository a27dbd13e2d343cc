//! Everett's exploration logic that needs no machine: fault plans, the search tree, coverage, checks of results and reports.
//!
//! Map:
//! - [`plan`]: reading, checking, writing, walking and drawing fault plans
//! - [`config`]: the `[explore]` table of a world file; [`fate`]: fault plan and end of the timeline at a path
//! - [`search`]: the tree of timelines and the choice of the next branch
//! - [`expedition`]: the course of an exploration: choosing branches, handing them out, recording and merging results
//! - [`fit`]: numbers of branches in flight and of checked branches that fit an exploration's length
//! - [`coverage`]: points that timelines reached, and estimates of what is unseen
//! - [`composer`]: the schedule of a test template's commands
//! - [`property`] and [`history`]: checks of logs, consoles and clients' histories
//! - [`run`]: the run directory and the state derived from it; [`report`]: the same as JSON and Markdown
//! - [`shrink`]: reduction to the fewest faults that still reproduce a finding
//! - [`suggest`]: suggestions for misspelt names; `pattern`: name patterns and regular expressions of world files
//!
//! Not here: applying faults (`everett-vmm`), running timelines and reading world files (`everett-session`), terminals
//! (`tools/`).
//!
//! **Invariants.**
//! - Decisions are functions of the input and of the world's streams. They use no host time, no unordered map and no floats.
//!   Figures that are only shown may be floats.
//! - Text is untrusted. Any bytes become either a value or errors that name the place, and take bounded memory.

pub mod composer;
pub mod config;
pub mod coverage;
pub mod expedition;
pub mod fate;
pub mod fit;
pub mod history;
mod pattern;
pub mod plan;
pub mod property;
pub mod report;
pub mod run;
pub mod search;
pub mod shrink;
pub mod suggest;

//! Explorations: a tree of timelines that fork at moments. The seed and a path are enough to replay a timeline.
//!
//! - [`setting`]: data that all branches of an exploration share: the booted world, the seed, the properties
//! - [`id`]: number of a finding or of a branch
//! - [`run_directory`]: a run directory, with the setting in which its branches ran
//! - [`path_runner`]: replays paths and runs branches
//! - `branch_moment`: moment at the end of a branch
//! - `history_chain`: clients' reports of their operations, up to a moment
//! - `moment_store`: store of moments with a memory budget
//! - [`abstractions`]: the explorer's view of a world: abstract states, properties, names
//! - [`witness`]: observes a branch: coverage, properties, histories and evidence
//! - `wire`: turns frames on the wire into the messages that coverage counts
//! - [`verdict`]: judges a history of clients' operations
//! - `marks`: recorded form of the digests along a branch
//! - [`expedition`]: runs an exploration on worker threads
//! - `worker_pool`: worker threads
//! - [`working`]: current activity of each worker
//! - [`cpu_time`]: CPU time by activity
//! - [`resource_use`]: CPU time and memory over the course of an exploration
//! - `replays`: runs all branches of an exploration again, on worker threads
//! - [`replay`]: runs a branch again and compares its digests with the recorded digests
//! - [`shrink`]: finds the fewest faults that still show a finding
//! - [`regression`]: regression files, which store a finding for a project's tests
//! - [`causality`]: finds the step that decided a finding
//! - [`reached_code`]: finds the functions and source lines that branches reached
//!
//! Not here: the choice of branches, coverage, the judgement of properties and the run directory (`everett_explorer`),
//! and terminal output (the commands of `everett`).
//!
//! **Invariants.**
//! - The result of a branch is a function of the [`setting`], the seed and its path. Three things do not matter: the
//!   worker that runs it, this worker's earlier branches, and whether the parent's moment was stored or derived again.
//! - The search chooses each branch by the results of earlier branches. It takes these results in the order in which
//!   it chose the branches. Host time decides only how many branches the search chooses.

pub mod abstractions;
pub mod branch_moment;
pub mod causality;
pub mod cpu_time;
pub mod expedition;
pub mod history_chain;
pub mod id;
pub mod marks;
pub mod moment_store;
pub mod path_runner;
#[cfg(feature = "inside")]
pub mod reached_code;
pub mod regression;
pub mod replay;
#[cfg(feature = "inside")]
pub(crate) mod replays;
pub mod resource_use;
pub mod run_directory;
pub mod setting;
pub mod shrink;
pub mod verdict;
mod wire;
pub mod witness;
pub mod worker_pool;
pub mod working;

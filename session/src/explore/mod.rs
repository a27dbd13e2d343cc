//! Explorations: timelines that fork at moments, are judged, and can be replayed from their paths alone.
//!
//! - [`setting`]: data that all branches of an exploration share
//! - `branch_moment`: a moment of the tree, with the observer state at it; `history_chain`: the history up to it
//! - [`path_runner`]: replays paths: forks, segments, the checks at the end
//! - [`abstractions`]: the explorer's view of a world; [`verdict`]: the judgement of a history
//! - [`witness`]: observation of a branch: coverage, properties, histories, evidence; `wire`: frames as messages
//! - `moment_store`: moments of the tree within a budget of memory, derived again when they were dropped
//! - `worker_pool`: workers, one thread each; [`cpu_time`]: their CPU time by activity; [`resource_use`]: resource use
//!   over time
//! - [`working`]: what each worker does at the moment
//! - [`expedition`]: the search, by workers on this host
//! - `marks`: digests along a branch; [`replay`]: a branch compared with its record; [`shrink`]: the fewest faults that
//!   show a finding; [`regression`]: regression files; [`causality`]: the step that decided a finding
//!
//! Not here: choices, coverage, judgement and the run directory (`everett_explorer`), and the output (`everett`'s
//! commands).
//!
//! **Invariants.**
//! - The result of a branch is a function of the [`setting`], the seed and its path. It does not depend on the worker
//!   that runs it, on that worker's earlier branches, or on whether its parent's moment was kept or derived again.
//! - Choices are a function of results, in the order of choices. Host time only decides after which choice the search
//!   ends.

pub mod abstractions;
pub mod branch_moment;
pub mod causality;
pub mod cpu_time;
pub mod expedition;
pub mod history_chain;
pub mod marks;
pub mod moment_store;
pub mod path_runner;
pub mod regression;
pub mod replay;
pub mod resource_use;
pub mod setting;
pub mod shrink;
pub mod verdict;
mod wire;
pub mod witness;
pub mod worker_pool;
pub mod working;

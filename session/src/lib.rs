//! Worlds that run: from a world file to machines, their agents, moments and explorations.
//!
//! From a file to a machine:
//! - `everett-world-file` reads world files; [`images`] builds images or takes them from the cache; [`identity`]
//!   computes the identity of a timeline
//! - [`engines`] chooses the engine that executes guests; [`machines`] makes machines on it; [`launch`] switches a
//!   world's machines on and checks their memory against the minimum from [`memory`]
//!
//! A running world:
//! - [`agent_script`] turns a node of a world file into requests; [`conversation`] exchanges them with the agent in the
//!   guest
//! - `sdk` puts the SDK into guests; `programs` has the programs for guests, in builds with them
//! - `node` joins a machine and its conversation; [`timeline`] joins all nodes; [`drive`] runs a timeline to its end;
//!   [`restarts`] starts nodes again; [`watching`] reports accesses to watched bytes
//! - [`event`] defines the events of a timeline; [`show`] formats them as lines, in the colours of [`style`]
//! - [`steps`] sends an agent a list of requests, one after the other; [`configure`] configures Debian packages that
//!   way
//!
//! Results:
//! - [`booted`] boots worlds or loads stored boots; [`moments`] stores booted and saved worlds; [`run_folder`] writes
//!   the output folder of a run
//! - [`explore`] explores with machines: workers, branches, replay, shrinking
//! - [`finding_file`] packs a finding with its world into one file, and unpacks it
//! - [`verify`] compares runs; [`bound`] computes the leak probability that a number of clean runs rules out
//! - [`symbols`] names addresses of a guest's kernel; [`edges`] names executed code
//!
//! [`progress`] is the interface through which long work reports to its caller; `worker` joins threads.
//!
//! Not here: world files (`everett-world-file`), arguments and terminals (`everett`), machines (`everett-vmm`),
//! decisions about timelines (`everett-explorer`).
//!
//! **Invariant.** Everything that Everett does to a guest happens at a vtime that is a function of the timeline alone.

pub mod agent_script;
pub mod booted;
pub mod bound;
pub mod configure;
pub mod containers;
pub mod conversation;
pub mod drive;
pub mod edges;
pub mod engines;
pub mod event;
pub mod explore;
pub mod finding_file;
pub mod identity;
pub mod images;
pub mod launch;
pub mod machines;
pub mod memory;
pub mod moments;
mod node;
mod programs;
pub mod progress;
pub mod restarts;
pub mod run_folder;
mod sdk;
pub mod show;
pub mod steps;
pub mod style;
pub mod symbols;
pub mod timeline;
pub mod verify;
pub mod watching;
mod worker;

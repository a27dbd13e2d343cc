//! Runs of a world: its launch, its boot, its end, and comparison with further runs.
//!
//! - [`launch`]: makes a world's machines, and checks that their memory suffices
//! - [`booted`]: loads the stored boot of a world, or boots it; [`restarts`]: starts single nodes again
//! - [`drive`]: runs a timeline to its end
//! - [`verify`]: compares runs of one timeline; [`bound`]: the leak probability that a number of clean runs rules out
//! - [`edges`]: names the executed code
//! - `worker`: joins worker threads

pub mod booted;
pub mod bound;
pub mod drive;
pub mod edges;
pub mod launch;
pub mod restarts;
pub mod verify;
pub(crate) mod worker;

//! Runs of a world: launch, boot, the run itself, and comparison of several runs.
//!
//! - [`launch`]: machines and timelines of a world
//! - [`booted`]: stored boot of a world, or a new boot
//! - [`restarts`]: restarts of single nodes
//! - [`drive`]: run of a timeline to its end
//! - [`verify`]: comparison of several runs of a timeline
//! - [`bound`]: leak probability that clean runs rule out
//! - [`edges`]: executed edges of code, with names
//! - `worker`: worker threads whose panics become errors

pub mod booted;
pub mod bound;
pub mod drive;
pub mod edges;
pub mod launch;
pub mod restarts;
pub mod verify;
pub(crate) mod worker;

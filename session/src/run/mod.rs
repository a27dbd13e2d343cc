//! Runs of a world: launch, boot, the run itself, and comparison of several runs.
//!
//! - [`launch`]: machines and timelines of a world
//! - [`prepared`]: a world whose image is in the cache
//! - [`booted`]: loads the stored moment at which a world's services were ready, or boots the world
//! - [`restarts`]: restarts of single nodes
//! - [`drive`]: runs a timeline to its end
//! - [`verify`]: runs a timeline several times and compares the runs
//! - [`bound`]: upper bound on the probability that a run depends on the host, after n equal runs
//! - [`edges`]: executed branches of guest code (source and target), with names
//! - `worker`: worker threads whose panics become errors

pub mod booted;
pub mod bound;
pub mod drive;
pub mod edges;
pub mod launch;
pub mod prepared;
pub mod restarts;
pub mod verify;
pub(crate) mod worker;

//! Worlds that run: from a world file to machines, their agents (Everett's program in each guest), moments and
//! explorations.
//!
//! Each folder uses only folders above it:
//! - [`guest`]: contents of guests: requests to their agents, programs that Everett adds, symbols of their kernels
//! - [`machines`]: machines, their engines and their memory
//! - [`world`]: the events, nodes and moments of a timeline, and its identity
//! - `inside`: reads machines from outside (their RAM and registers, and the files of their programs), and runs programs
//!   in throw-away forks of timelines
//! - [`output`]: events as lines, text styles, progress reports and run folders
//! - [`images`]: images of worlds, from the cache or built
//! - [`run`]: runs of a world: launch, boot, restarts, verification and executed jumps
//! - `no_probes`: replaces `probes` in builds without the feature `inside`
//! - `probes`: values at places of programs, read while timelines run
//! - [`explore`]: explorations: workers, branches, replay and shrinking
//! - `debug`: recorded timelines that move to any instant
//! - [`finding_file`]: a finding and its world in one file
//!
//! Not here: world files (`everett-world-file`), arguments and terminals (`everett`), machines (`everett-vmm`),
//! decisions about timelines (`everett-explorer`).
//!
//! **Invariant.** Everything that Everett does to a guest happens at a vtime that is a function of the timeline alone.

#[cfg(feature = "inside")]
pub mod debug;
pub mod explore;
pub mod finding_file;
pub mod guest;
pub mod images;
#[cfg(feature = "inside")]
pub mod inside;
pub mod machines;
#[cfg(not(feature = "inside"))]
pub mod no_probes;
pub mod output;
#[cfg(feature = "inside")]
pub mod probes;
pub mod run;
pub mod world;

#[cfg(not(feature = "inside"))]
pub use no_probes as probes;

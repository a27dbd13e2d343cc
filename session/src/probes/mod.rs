//! Probes: values at places of programs, read while timelines run.
//!
//! A probe is a breakpoint that no guest can observe. Where it stops a machine, Everett evaluates the probe's expressions
//! from the machine's registers and memory, and the machine goes on.
//!
//! Each module uses only modules above it:
//! - [`limits`]: bounds of probes
//! - [`expression`]: expressions over registers, memory and variables
//! - [`format`](mod@format): formats of values
//! - [`probe`]: a probe as the operator writes it
//! - [`hit`]: hits of a branch
//! - `programs`: programs of images, and places in them
//! - `wanted`: a probe with its conditions and nodes
//! - `loaded`: programs in memory, and the linear addresses of probes
//! - `scene`: the machine at a hit, as expressions read it
//! - [`at_rest`]: values of expressions at an instant, without a hit
//! - `probing`: probes, with everything that observers of timelines share
//! - [`code`]: programs that ran on a timeline, and places and values in them at an instant
//! - `stops`: sets the breakpoints of a timeline, and finds the hits
//! - `declared`: the probes of a world file, as explorations observe them
//! - [`in_fork`]: observation of a world's probes in a fork
//!
//! **Invariant.** A value that cannot be read is a word that says why, never a number.

pub mod at_rest;
pub mod code;
mod declared;
pub mod expression;
pub mod format;
pub mod hit;
pub mod in_fork;
pub mod limits;
mod loaded;
pub mod probe;
pub(crate) mod probing;
mod programs;
mod scene;
pub(crate) mod stops;
#[cfg(test)]
mod tests;
pub(crate) mod wanted;

pub use declared::Declared;
pub(crate) use declared::{Prober, check};

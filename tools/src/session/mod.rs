//! A timeline: machines, their agents, and what the world file asks of them.
//!
//! * [`plan`] turns a node of a world file into requests; [`agent`] holds the conversation with the agent; [`event`]
//!   is what comes out of it, and [`show`] makes lines of that.
//! * `node` joins a machine and its conversation; [`timeline`] all of them; [`launch`] switches them on, with as much
//!   memory as [`memory`] says that they need at least; [`drive`] runs a
//!   timeline to its end.
//! * [`steps`] asks an agent for one thing after the other, and [`configure`] has packages configured that way.
//!
//! **Invariant.** Everything the host does to a guest happens at a vtime that is a function of the timeline alone.

pub mod agent;
pub mod configure;
pub mod drive;
pub mod event;
pub mod launch;
pub mod memory;
mod node;
pub mod plan;
pub mod restarts;
pub mod show;
pub mod steps;
pub mod timeline;
pub mod watching;

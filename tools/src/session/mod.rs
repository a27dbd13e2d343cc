//! A timeline: one machine, its agent, and what the world file asks of them.
//!
//! * [`plan`] turns a node of a world file into requests; [`agent`] holds the conversation with the agent; [`event`]
//!   is what comes out of it, and [`show`] makes lines of that.
//!
//! **Invariant.** Everything the host does to a guest happens at a vtime that is a function of the timeline alone.

pub mod agent;
pub mod event;
pub mod plan;
pub mod show;

//! Timelines of a world: events, nodes, conversations with agents, and stored moments.
//!
//! - [`identity`]: the digest of everything that determines a timeline, except its seed and path
//! - [`event`]: the events of a timeline
//! - [`conversation`]: exchanges requests with the agent in a guest
//! - [`watching`]: reports accesses to watched bytes of guest memory
//! - `node`: joins a machine and its conversation; [`timeline`]: joins all nodes
//! - [`moments`]: stored boots and saved moments

pub mod conversation;
pub mod event;
pub mod identity;
pub mod moments;
mod node;
pub mod timeline;
pub mod watching;

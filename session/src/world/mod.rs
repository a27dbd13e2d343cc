//! Timelines of a world: events, nodes, conversations with agents, and stored moments.
//!
//! - [`identity`]: digest of everything that determines a timeline, except its seed and path
//! - [`event`]: events of a timeline
//! - [`conversation`]: requests to an agent (Everett's program in a guest), and its answers
//! - [`watching`]: watchpoints on guest memory
//! - `node`: a machine with its conversation
//! - [`timeline`]: a running world with all conversations
//! - [`moments`]: files that store moments: the moment after the boot at which all services were ready, and moments
//!   that the operator saved

pub mod conversation;
pub mod event;
pub mod identity;
pub mod moments;
mod node;
pub mod timeline;
pub mod watching;

//! Contents of guests: requests to agents (Everett's program in each guest), other programs that Everett adds, kernel
//! symbols.
//!
//! - [`agent_script`]: all requests to a node's agent
//! - [`containers`]: command lines for processes of container images
//! - `sdk`: files and environment variables of the SDK
//! - `programs`: programs that Everett puts into guests
//! - [`symbols`]: symbols of the kernel in a file

pub mod agent_script;
pub mod containers;
pub(crate) mod programs;
pub(crate) mod sdk;
pub mod symbols;

//! Contents of guests: requests to their agents, programs that Everett adds, symbols of their kernels.
//!
//! - [`agent_script`]: a node of a world file as requests to the agent in the guest
//! - [`containers`]: command lines of processes of container images
//! - `sdk`: files and variables of the SDK; `programs`: the programs for guests, in builds with them
//! - [`symbols`]: names of addresses in a guest's kernel

pub mod agent_script;
pub mod containers;
pub(crate) mod programs;
pub(crate) mod sdk;
pub mod symbols;

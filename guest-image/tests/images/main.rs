//! Images, built by a whole program: what the host's apt refuses, and inputs that need neither a network nor a machine.

mod apt;
mod build;
mod kernel;

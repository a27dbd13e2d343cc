//! Commands that look into machines at an instant of a recorded branch.
//!
//! - `instant`: arguments that name an instant, and the way there
//! - `guests`: the guests of the machines at an instant, read from outside
//! - `core`: writes processes as core files for gdb
//! - `ps`: lists processes
//! - `stack`: prints stacks

pub(super) mod core;
mod guests;
mod instant;
pub(super) mod ps;
pub(super) mod stack;

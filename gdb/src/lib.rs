//! Serves a machine of a recorded timeline to gdb (the remote serial protocol, GDB manual, appendix E): one process with
//! its threads and its address space, or the kernel.
//!
//! gdb reads registers and memory at any instant, and moves the timeline forwards and backwards. It cannot change
//! anything: the timeline is recorded, so writes to memory and registers are refused. Other nodes, the kernel and other
//! processes move along.
//!
//! - [`error`]: [`Error`], the reasons why a session ends
//! - [`limits`]: bounds of a session
//! - [`registers`]: registers in the order that gdb expects
//! - [`debuggee`]: what gdb looks at: a process or the kernel of a node
//! - [`motion`]: steps and continues, forwards and backwards
//! - `target`: answers to gdb's packets
//! - [`serve`](mod@serve): a session with gdb
//!
//! Not here: the start of gdb and the files that it reads (`everett/`), the way to an instant (`session/`).

pub mod debuggee;
pub mod error;
pub mod limits;
pub mod motion;
pub mod registers;
pub mod serve;
mod target;

pub use debuggee::{Debuggee, Subject};
pub use error::Error;
pub use serve::serve;

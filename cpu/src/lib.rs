//! The soft x86-64 CPU: executes guest instructions on guest RAM, exactly and countably, on any x86-64 host.
//!
//! It knows memory and registers only. Devices, interrupt controllers and time are outside: an access to an address that
//! is not RAM ends [`Cpu::run`], the caller answers, and the next `run` finishes the instruction.
//!
//! - [`state`]: the architectural state as plain data
//! - `core`: the same in the form that executes
//! - `mem/`: RAM, paging, the software TLB, coherence
//! - `decode/`: instructions to operations, the cache of blocks
//! - `op/`: a decoded instruction with its operands
//! - `exec/`: the handlers, by family of instructions, and delivery of exceptions and interrupts
//! - `model`, `cpuid`, `msr`: the CPU model `v2`
//! - `run`: the loop; `fetch`: from RIP to the next block; `exit`: why a run ends; `code`: what it knows of code, and who shares that; `translate/`: hot blocks as host code
//! - `failure`: panics of all of that, which end the run and not the process
//! - `edges`: which branch went where, if somebody asks
//! - `zeroed`: tables that cost nothing where nobody has been
//!
//! **Invariants.**
//! - What a guest computes is a function of its state and RAM: never of the sizes or contents of caches, of where a run
//!   was stopped, or of the host.
//! - The count is exact: a run stops between two instructions of the guest, and an iteration of a repeated string
//!   instruction counts as one.
//! - No input panics: whatever bytes a guest executes end in guest exceptions or in an [`Exit`].

mod code;
mod core;
pub mod cpuid;
mod decode;
mod edges;
mod exec;
mod exit;
mod failure;
mod fetch;
mod flags;
mod host_fp;
mod mem;
#[doc(hidden)]
pub mod model;
pub mod msr;
mod op;
mod run;
pub mod state;
mod stop;
mod translate;
mod zeroed;

pub use crate::code::{CacheConfig, Code};
pub use crate::core::TscAnchor;
pub use crate::edges::{EDGES_MAX, Edge, Place, page_name};
pub use crate::exit::Exit;
pub use crate::mem::mmio::Request;
pub use crate::mem::{HITS_MAX, Hit, Ram, Watchpoint};
pub use crate::run::{Cpu, Until};
pub use crate::state::CpuState;

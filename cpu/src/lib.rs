//! The soft x86-64 CPU: executes guest instructions on guest RAM, on any x86-64 host, and counts them exactly.
//!
//! The crate models memory and registers only. Devices, interrupt controllers and time belong to the caller. An access
//! to a port or to an address outside RAM ends [`Cpu::run`]. The caller answers the access, and the next `run` finishes
//! the instruction.
//!
//! - [`state`]: the architectural state as plain data
//! - `core`: the same state in the form that the instruction handlers use
//! - `mem/`: RAM, paging, the software TLB and its coherence with page tables, and requests to devices
//! - `decode/`: decodes guest bytes to blocks of operations, and caches the blocks
//! - `op/`: operations, i.e. decoded instructions with their operands and handlers (the functions that execute them)
//! - `exec/`: the handlers, by family of instructions, and the delivery of exceptions and interrupts
//! - `flags`: the arithmetic flags, computed when something reads them
//! - `host_fp/`: floating-point and packed integer arithmetic, executed by the host's own instructions
//! - `stop`: exception vectors, and the ways in which a handler ends its block early
//! - [`model`], [`cpuid`], [`msr`]: the CPU models: their instructions, CPUID results and model-specific registers
//! - `run`: the run loop
//! - `fetch`: the lookup of the next block
//! - `exit`: reasons for the end of a run
//! - `code`: decoded and translated code, which CPUs can share
//! - `translate/`: translation of hot blocks, i.e. blocks that are often executed, to host code
//! - `failure`: containment of panics in the CPU's own code, so that a panic ends the run and not the process
//! - `edges`: records which instruction follows each branch (branch edges), if enabled
//! - `zeroed`: large tables whose untouched parts use no host memory
//!
//! **Invariants.**
//! - A guest's results are a function of its state and RAM. They do not depend on the sizes or contents of caches, on
//!   where a run stopped, or on the host.
//! - The instruction count is exact: a run stops between two guest instructions. Each iteration of a repeated string
//!   instruction counts as one instruction.
//! - No guest input makes the CPU panic: any bytes that a guest executes lead to guest exceptions or to an [`Exit`].

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
pub use crate::edges::{CodeLocation, EDGES_MAX, Edge, page_name};
pub use crate::exit::Exit;
pub use crate::mem::mmio::Request;
pub use crate::mem::{HITS_MAX, Ram, Watchpoint, WatchpointHit};
pub use crate::model::{CpuModel, MissingInstruction};
pub use crate::run::{Cpu, Until};
pub use crate::state::{CpuState, Extended};
pub use crate::translate::Traces;

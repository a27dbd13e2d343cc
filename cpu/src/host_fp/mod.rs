//! Arithmetic by the host's own instructions. Floating-point results and status flags therefore equal those of
//! hardware, bit for bit. All inline assembly and vector intrinsics of the crate are in this module.
//!
//! - [`vector`]: conversion between `u128` and the host's vector type
//! - [`packed`]: SSE2 integer arithmetic, which the host executes faster than Rust code
//! - [`sse`]: SSE and SSE2 arithmetic under a given MXCSR
//! - [`x87`]: x87 arithmetic under a given control word
//!
//! The module uses only x87 and SSE2, which every x86-64 host has, so that all hosts give the same results. For later
//! instruction sets, e.g. SSE3 or SSE4.1, the instruction handlers combine several of these functions.
//!
//! **Invariants.**
//! - Each function sets the control register that it needs, and restores the host's value in the same block of
//!   assembly. Code that the compiler places between two calls therefore never runs under the guest's rounding mode.
//! - No function can raise an exception on the host. SSE exceptions are masked while a function runs. x87 exceptions
//!   are cleared before an instruction that would deliver them.

pub(crate) mod packed;
pub(crate) mod sse;
pub(crate) mod vector;
pub(crate) mod x87;

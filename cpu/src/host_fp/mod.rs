//! Arithmetic by the host's own instructions: floating point, so that results and status flags are the hardware's to the
//! bit; packed integers, because they are there. All inline assembly and vector intrinsics of the crate are here.
//!
//! - [`vector`]: between `u128` and the host's vector type
//! - [`packed`]: SSE2 integer arithmetic
//! - [`sse`]: SSE2 arithmetic under a given MXCSR
//! - [`x87`]: x87 arithmetic under a given control word
//!
//! Only baseline x86-64 (SSE2) is used, so that every host gives the same results; later instruction sets are composed
//! from these by their users.
//!
//! **Invariants.**
//! - Each function sets the control state that it needs and restores the host's in one block of assembly: what the
//!   compiler does between two calls never sees the guest's rounding mode.
//! - No function can raise an exception on the host: SSE exceptions are masked while they run; x87 exceptions are
//!   cleared before an instruction that would deliver them.

pub(crate) mod packed;
pub(crate) mod sse;
pub(crate) mod vector;
pub(crate) mod x87;

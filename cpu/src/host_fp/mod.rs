//! Arithmetic by the host's own instructions. They compute floating-point results and status flags that equal the
//! hardware's to the bit. Packed integer arithmetic uses them because they are available. All inline assembly and
//! vector intrinsics of the crate are in this module.
//!
//! - [`vector`]: conversion between `u128` and the host's vector type
//! - [`packed`]: SSE2 integer arithmetic
//! - [`sse`]: SSE2 arithmetic under a given MXCSR
//! - [`x87`]: x87 arithmetic under a given control word
//!
//! Only baseline x86-64 (SSE2) is used, so that every host gives the same results. Handlers compose later instruction
//! sets from these functions.
//!
//! **Invariants.**
//! - Each function sets the control state that it needs and restores the host's in the same block of assembly. So
//!   code that the compiler places between two calls never runs under the guest's rounding mode.
//! - No function can raise an exception on the host. SSE exceptions are masked while a function runs. x87 exceptions
//!   are cleared before an instruction that would deliver them.

pub(crate) mod packed;
pub(crate) mod sse;
pub(crate) mod vector;
pub(crate) mod x87;

//! Instruction handlers, by family. Each family's `lower` chooses a handler for a decoded instruction.
//!
//! - [`integer`]: arithmetic, logic, moves, shifts, bits and stack, i.e. most of a compiler's output
//! - [`control`]: near branches, calls, returns
//! - [`string`]: MOVS, STOS, LODS, SCAS, CMPS and their repeated forms
//! - [`system`]: privileged instructions, far transfers, segments, exceptions
//! - [`sse`]: SSE to SSE4.2 and MMX
//! - [`avx`]: AVX, AVX2, F16C, FMA and the XSAVE family
//! - [`x87`]: the floating-point stack
//! - [`interrupt`]: delivery of exceptions and interrupts
//! - [`undefined`]: invalid instructions, and those that the CPU model lacks
//! - [`event`]: description of an exception or interrupt to deliver
//!
//! **Invariant.** If a handler raises an exception or must be repeated, it leaves the general registers as they were,
//! so that the CPU can execute the instruction again. The handler may already have written memory, if a repetition
//! writes the same values.

pub(crate) mod avx;
pub(crate) mod control;
mod event;
pub(crate) mod integer;
pub(crate) mod interrupt;
pub(crate) mod sse;
pub(crate) mod string;
pub(crate) mod system;
pub(crate) mod undefined;
pub(crate) mod x87;

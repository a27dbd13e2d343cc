//! The handlers, by family. Each family's `lower` chooses among its own.
//!
//! - [`integer`]: arithmetic, logic, moves, shifts, bits, stack: what compilers emit
//! - [`control`]: near branches, calls, returns
//! - [`string`]: MOVS, STOS, LODS, SCAS, CMPS and their repeated forms
//! - [`system`]: privileged instructions, far transfers, segments, exceptions
//! - [`sse`]: SSE to SSE4.2 and MMX
//! - [`x87`]: the floating-point stack
//! - [`interrupt`]: delivery of exceptions and interrupts
//!
//! A handler changes nothing before its last fallible step, so that it can be abandoned and repeated.

pub(crate) mod control;
pub(crate) mod integer;
pub(crate) mod interrupt;
pub(crate) mod sse;
pub(crate) mod string;
pub(crate) mod system;
pub(crate) mod x87;

use crate::core::Core;
use crate::op::Op;
use crate::stop::Flow;

/// #GP(0).
pub(crate) fn too_long(core: &mut Core, _op: &Op) -> Flow {
    Err(core.gp())
}

/// #UD.
pub(crate) fn undefined(core: &mut Core, _op: &Op) -> Flow {
    Err(core.ud())
}

//! Integer instructions on registers and memory.
//!
//! A handler is the function that executes an instruction. Handlers are generic over width, operation and form of the
//! address, and the compiler generates one function for each combination. `lower` chooses the function once per decoded
//! instruction. If the manual leaves a flag undefined but current processors agree on its value, the flag gets
//! this value.

pub(crate) mod alu;
mod bits;
mod bmi;
mod cond;
mod exchange;
mod mov;
mod muldiv;
pub(crate) mod shift;
mod stack;
mod unary;
pub(crate) mod width;

pub(crate) use cond::{Cc, Condition, number, with_condition};

use crate::op::{Kind, Op};
use iced_x86::Instruction;

/// Chooses a handler by operand width and type parameters.
macro_rules! by_width {
    ($width:expr, $f:ident $(, $t:ty)*) => {
        match $width {
            1 => $f::<u8 $(, $t)*> as $crate::op::Handler,
            2 => $f::<u16 $(, $t)*>,
            4 => $f::<u32 $(, $t)*>,
            _ => $f::<u64 $(, $t)*>,
        }
    };
}
/// Chooses a handler with a memory operand, by operand width, address form and type parameters.
macro_rules! by_memory {
    ($op:expr, $width:expr, $f:ident $(, $t:ty)*) => {
        match ($crate::op::operand::is_near($op), $width) {
            (true, 1) => $f::<u8, $crate::op::Near $(, $t)*> as $crate::op::Handler,
            (true, 2) => $f::<u16, $crate::op::Near $(, $t)*>,
            (true, 4) => $f::<u32, $crate::op::Near $(, $t)*>,
            (true, _) => $f::<u64, $crate::op::Near $(, $t)*>,
            (false, 1) => $f::<u8, $crate::op::Full $(, $t)*>,
            (false, 2) => $f::<u16, $crate::op::Full $(, $t)*>,
            (false, 4) => $f::<u32, $crate::op::Full $(, $t)*>,
            (false, _) => $f::<u64, $crate::op::Full $(, $t)*>,
        }
    };
}
pub(crate) use {by_memory, by_width};

/// Chooses the handler of an integer instruction. Returns `None` for other instructions.
pub(crate) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    mov::lower(i, op)
        .or_else(|| alu::lower(i, op))
        .or_else(|| stack::lower(i, op))
        .or_else(|| unary::lower(i, op))
        .or_else(|| shift::lower(i, op))
        .or_else(|| cond::lower(i, op))
        .or_else(|| bits::lower(i, op))
        .or_else(|| bmi::lower(i, op))
        .or_else(|| muldiv::lower(i, op))
        .or_else(|| exchange::lower(i, op))
}

//! Being written.
use crate::op::{Kind, Op};
use iced_x86::Instruction;

/// Lower an instruction of this family.
pub(crate) fn lower(_i: &Instruction, _op: &mut Op) -> Option<Kind> {
    None
}

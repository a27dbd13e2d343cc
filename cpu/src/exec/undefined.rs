//! Invalid instructions, and those that the CPU model lacks.

use crate::core::Core;
use crate::model::MissingInstruction;
use crate::op::{Op, slot};
use crate::stop::Flow;

/// Returns an operation that raises #UD.
pub(crate) fn undefined() -> Op {
    Op {
        run: raise,
        imm: 0,
        disp: 0,
        dst: 0,
        src: 0,
        base: slot::ZERO,
        index: slot::ZERO,
        scale: 0,
        seg: slot::ZERO,
        off: 0,
        len: 0,
        idx: 0,
        aux: 0,
    }
}

/// Returns an operation that raises #GP(0): the instruction is longer than 15 bytes (SDM vol. 3A, 6.15, interrupt
/// 13).
pub(crate) fn too_long() -> Op {
    Op { run: raise_too_long, ..undefined() }
}

/// Returns an operation that raises #UD, because the CPU's model lacks the instruction and a larger one has it.
pub(crate) fn missing(missing: MissingInstruction) -> Op {
    Op { run: raise_missing, imm: missing.number(), ..undefined() }
}

/// Handler of an instruction that is longer than 15 bytes: raises #GP(0).
fn raise_too_long(core: &mut Core, _op: &Op) -> Flow {
    Err(core.gp())
}

/// Handler of an instruction that only larger models have: notes it for the operator if a program executes it, and raises
/// #UD.
fn raise_missing(core: &mut Core, op: &Op) -> Flow {
    if core.cpl == 3 && core.missing.is_none() {
        core.missing = MissingInstruction::of_number(op.imm);
    }
    Err(core.ud())
}

/// Handler of an undefined instruction: raises #UD.
fn raise(core: &mut Core, _op: &Op) -> Flow {
    Err(core.ud())
}

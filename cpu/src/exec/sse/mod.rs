//! MMX and SSE to SSE4.2, in their legacy encodings: lowering, and the map of the folder.
//!
//! - `operand`: checks that SSE can be used, operands, and the shapes that most instructions share
//! - `moves`, `element`: moves of all kinds; single elements; PTEST
//! - `integer`, with the pure functions in `lanes` and `shuffle`: packed integers, logic, shuffles
//! - `float`, `precision`: the guest's MXCSR, exceptions, the quick path; `arith`, `compare`, `convert`: instructions
//!   that use them
//! - `round`, `horizontal`, `approximate`, `strings`: instructions newer than SSE2, and approximations; composed of
//!   SSE2 arithmetic or computed in software
//! - `fxsave`: MXCSR, FXSAVE, FXRSTOR, EMMS, fences and hints
//!
//! Not here: CRC32 and POPCNT (integer instructions), x87.
//!
//! **Invariants.** Floating-point results and MXCSR flags are those of the host hardware (see [`crate::host_fp`]),
//! except where a module states that it computes them. An instruction that raises #XM changes MXCSR's flags and
//! nothing else.

mod approximate;
mod arith;
mod compare;
mod convert;
mod element;
mod float;
mod fxsave;
mod horizontal;
mod integer;
mod lanes;
mod moves;
mod operand;
mod precision;
mod round;
mod shuffle;
mod strings;

use crate::op::{Kind, Op};
use iced_x86::{Instruction, Mnemonic, OpKind};

/// Lowers an MMX or SSE instruction, or returns `None` for any other.
pub(crate) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let mut candidate = *op;
    if matches!(i.mnemonic(), Mnemonic::Maskmovdqu | Mnemonic::Maskmovq) {
        moves::masked_operand(i, &mut candidate);
    } else {
        operands(i, &mut candidate);
    }
    let files: [fn(&Instruction, &mut Op) -> Option<Kind>; 11] = [
        moves::lower,
        integer::lower,
        arith::lower,
        compare::lower,
        convert::lower,
        element::lower,
        round::lower,
        horizontal::lower,
        approximate::lower,
        strings::lower,
        fxsave::lower,
    ];
    let kind = files.iter().find_map(|lower| lower(i, &mut candidate))?;
    *op = candidate;
    Some(kind)
}

/// Fills in the register numbers of the first two operands, and the immediate.
fn operands(i: &Instruction, op: &mut Op) {
    if i.op_kind(0) == OpKind::Register {
        op.dst = i.op_register(0).number() as u8;
    }
    if i.op_kind(1) == OpKind::Register {
        op.src = i.op_register(1).number() as u8;
    }
    for n in 1..i.op_count() {
        if i.op_kind(n) == OpKind::Immediate8 {
            op.imm = u64::from(i.immediate8());
        }
    }
}

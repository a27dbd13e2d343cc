//! MMX, SSE to SSE4.2, AES-NI and SHA in their legacy encodings.
//!
//! - `operand`: access to operands, the check that the guest may use SSE, and macros for the most common operand forms
//! - `moves`: moves of all kinds
//! - `element`: insertion and extraction of single elements, PTEST
//! - `integer`: packed integers, logic and shuffles, with the pure functions of `lanes` and `shuffle`
//! - `float`, `precision`: floating-point exceptions under the guest's MXCSR, and a quick path for operations that
//!   change no flag of MXCSR
//! - `arith`, `compare`, `convert`: instructions that use `float`
//! - `round`, `horizontal`, `approximate`, `strings`: instructions composed of SSE2 arithmetic or computed in software
//! - `aes`, `sha`: AES-NI, PCLMULQDQ and SHA, computed in software
//! - `fxsave`: MXCSR, FXSAVE, FXRSTOR, EMMS, fences and hints
//!
//! CRC32 and POPCNT are in `exec::integer`.
//!
//! **Invariants.** Floating-point results and MXCSR flags are those of the host ([`crate::host_fp`]), except where a
//! module says that it computes them in software. An instruction that raises #XM changes only the flags in MXCSR.
//! If the instruction is a conversion into or out of an MMX register, it has also entered the MMX state.

mod aes;
mod approximate;
mod arith;
mod compare;
pub(crate) mod convert;
mod element;
pub(crate) mod float;
pub(crate) mod fxsave;
mod horizontal;
mod integer;
pub(crate) mod lanes;
pub(crate) mod moves;
pub(crate) mod operand;
mod precision;
pub(crate) mod round;
mod sha;
pub(crate) mod shuffle;
mod strings;

use crate::op::{Kind, Op};
use iced_x86::{Instruction, Mnemonic, OpKind};

/// Chooses the handler of an MMX or SSE instruction. Returns `None` for other instructions.
pub(crate) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let mut candidate = *op;
    if matches!(i.mnemonic(), Mnemonic::Maskmovdqu | Mnemonic::Maskmovq) {
        moves::masked_operand(i, &mut candidate);
    } else {
        operands(i, &mut candidate);
    }
    let files: [fn(&Instruction, &mut Op) -> Option<Kind>; 13] = [
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
        aes::lower,
        sha::lower,
        fxsave::lower,
    ];
    let kind = files.iter().find_map(|lower| lower(i, &mut candidate))?;
    *op = candidate;
    Some(kind)
}

/// Stores the register numbers of the first two operands, and the immediate, in `op`.
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

//! AVX, AVX2, F16C and FMA, and the VEX encodings of SSE, AES-NI and PCLMULQDQ.
//!
//! - `operand`: access to operands, the check that the guest may use AVX, and macros for operand forms
//! - `legacy`: VEX encodings of SSE instructions, which execute the handlers of the legacy encodings
//! - `moves`, `masked`: moves of all kinds
//! - `permute`: permutations, broadcasts, blends and variable shifts
//! - `element`: insertion and extraction of single elements
//! - `compare`: compares with the 32 predicates of AVX, and tests of sign bits
//! - `gather`: gathers
//! - `half`: F16C
//! - `fma`, `soft`: fused multiply-add, in software arithmetic
//! - `xsave`: XSAVE and its relatives
//!
//! **Invariants.** An instruction of 128 bits clears the upper half of its destination. An instruction of 256 bits that
//! raises #XM sets the flags of both halves, and stores no result.

mod compare;
mod element;
mod fma;
mod gather;
mod half;
mod legacy;
mod masked;
mod moves;
mod operand;
mod permute;
mod soft;
pub(crate) mod xsave;

use crate::op::{Kind, Op};
use iced_x86::{EncodingKind, Instruction};

/// Chooses the handler of a VEX instruction on vectors, or of XSAVE and its relatives. Returns `None` for other
/// instructions.
pub(crate) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    if i.code().op_code().encoding() != EncodingKind::VEX {
        return xsave::lower(i, op);
    }
    let mut candidate = *op;
    operand::operands(i, &mut candidate);
    let files: [fn(&Instruction, &mut Op) -> Option<Kind>; 9] = [
        moves::lower,
        masked::lower,
        element::lower,
        permute::lower,
        compare::lower,
        gather::lower,
        half::lower,
        fma::lower,
        legacy::lower,
    ];
    let kind = files.iter().find_map(|lower| lower(i, &mut candidate))?;
    *op = candidate;
    Some(kind)
}

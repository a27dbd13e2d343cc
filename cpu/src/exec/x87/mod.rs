//! x87 instructions.
//!
//! - `stack`: registers, tags, exceptions, shared helpers
//! - `arith`, `compare`, `transfer`: instructions whose results the host's x87 computes
//! - `integer`: exact conversion of integers and packed decimal numbers
//! - `format`: packing and unpacking of the extended-precision format
//! - `remainder`: FPREM and FPREM1
//! - `transcendental/`: sines, arctangents, logarithms, powers of two
//! - `control`: control and status words, environments
//!
//! This folder implements the register stack, tags, stack faults and responses to masked exceptions. The host computes
//! arithmetic and rounding ([`crate::host_fp`]), except for FPREM, FPREM1 and the transcendental functions.

mod arith;
mod compare;
mod control;
mod format;
mod integer;
mod remainder;
mod stack;
mod transcendental;
mod transfer;

use crate::op::{Kind, Op};
use iced_x86::{Instruction, OpKind};

/// Chooses the handler of an x87 instruction. Returns `None` for other instructions.
pub(crate) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let mut candidate = *op;
    if i.op_kind(0) == OpKind::Register {
        candidate.dst = i.op_register(0).number() as u8;
    }
    if i.op_kind(1) == OpKind::Register {
        candidate.src = i.op_register(1).number() as u8;
    }
    if i.op_kind(0) == OpKind::Memory {
        candidate.aux |= stack::MEMORY;
    }
    let files: [fn(&Instruction, &mut Op) -> Option<Kind>; 6] = [
        arith::lower,
        compare::lower,
        transfer::lower,
        control::lower,
        remainder::lower,
        transcendental::lower,
    ];
    let kind = files.iter().find_map(|lower| lower(i, &mut candidate))?;
    *op = candidate;
    Some(kind)
}

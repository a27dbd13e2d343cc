//! x87: lowering, and the map of the folder.
//!
//! - `stack`: registers, tags, exceptions, shared helpers
//! - `arith`, `compare`, `transfer`: operations that the host's x87 computes, one at a time
//! - `integer`: conversions that are always exact
//! - `format`, `remainder`: packing and unpacking of the format; FPREM and FPREM1
//! - `transcendental/`: sines, arctangents, logarithms, powers of two
//! - `control`: control and status, environments
//!
//! The state machine (stack, tags, faults, masked responses) is implemented here. Sums and roundings are computed by
//! the host hardware (see [`crate::host_fp`]).

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

/// Lowers an x87 instruction, or returns `None` for any other.
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

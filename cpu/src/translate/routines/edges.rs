//! The routine that records edges (executed jumps).

use super::boundary::call;
use super::jumps::entry_for;
use crate::core::edges::RECENT_MASK;
use crate::edges::{NUMBER_ROTATION, TABLE_SHIFT};
use crate::op::slot::FROM;
use crate::translate::asm::{Alu, Asm, NOT_EQUAL, R9, R10, R11, R12, R15};
use crate::translate::enter::note_edge;
use crate::translate::frame::{EDGE_CHECK, EDGES_MASK, EDGES_RECENT, EDGES_TABLE, slot};

/// Emits the routine `edge`.
pub(super) fn edge(asm: &mut Asm) {
    let (other, unknown) = (asm.label(), asm.label());
    asm.alu_memory_imm(Alu::Cmp, R15, EDGE_CHECK, 0);
    asm.jump_if(NOT_EQUAL, unknown);
    // R10 = number of the edge, as computed by `crate::edges::number`.
    asm.load(R10, R15, slot(FROM));
    asm.rotate_left(R10, NUMBER_ROTATION);
    asm.alu(Alu::Xor, R10, R11);
    entry_for(asm, R12, R10, RECENT_MASK, TABLE_SHIFT, EDGES_RECENT);
    asm.alu_memory(Alu::Cmp, R10, R12, 0);
    asm.jump_if(NOT_EQUAL, other);
    asm.store_imm(R15, slot(FROM), 0);
    asm.ret();

    asm.bind(other);
    asm.copy(R9, R10);
    asm.shift_right(R9, 12);
    asm.alu(Alu::Xor, R9, R10);
    asm.alu_memory(Alu::And, R9, R15, EDGES_MASK);
    asm.shift_left(R9, TABLE_SHIFT);
    asm.alu_memory(Alu::Add, R9, R15, EDGES_TABLE);
    asm.alu_memory(Alu::Cmp, R10, R9, 0);
    asm.jump_if(NOT_EQUAL, unknown);
    asm.store(R12, 0, R10);
    asm.store_imm(R15, slot(FROM), 0);
    asm.ret();

    asm.bind(unknown);
    call(asm, note_edge as *const () as u64);
    asm.ret();
}

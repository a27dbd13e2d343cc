//! Routines that check whether the guest may execute a page, and whether the page has the bytes that were translated.

use super::access::{entry, interpret};
use super::boundary::{fill, leave_from_site, leave_with, spill};
use super::mxcsr::give_mxcsr_back;
use crate::mem::tlb;
use crate::op::slot::{CONTENTS, RAM};
use crate::translate::SECOND;
use crate::translate::asm::{Alu, Asm, Label, NOT_EQUAL, R9, R11, R13, R15, RAX, RDI, RSI};
use crate::translate::enter::missed_exec;
use crate::translate::frame::{MIDDLE, slot};

/// Emits the routine `executable`.
pub(super) fn executable(asm: &mut Asm, mask: usize, miss: u64) {
    let unknown = asm.label();
    entry(asm, R11, mask);
    asm.alu_imm(Alu::And, R13, -4096);
    asm.alu_memory(Alu::Cmp, R13, R11, tlb::EXEC as i32);
    asm.jump_if(NOT_EQUAL, unknown);
    asm.ret();
    asm.bind(unknown);
    // A page walk here would mark the target page as accessed, although the push of the return address may still fault.
    interpret(asm, miss);
}

/// Emits the routine `second`.
pub(super) fn second(asm: &mut Asm, mask: usize, base: u64, leave: u64) {
    let (again, unknown, other) = (asm.label(), asm.label(), asm.label());
    asm.bind(again);
    entry(asm, R9, mask);
    asm.alu_memory(Alu::Cmp, R13, R9, tlb::EXEC as i32);
    asm.jump_if(NOT_EQUAL, unknown);
    asm.alu_memory(Alu::Add, R13, R9, tlb::ADDEND as i32);
    asm.alu_memory(Alu::Sub, R13, R15, slot(RAM));
    asm.shift_right(R13, 12);
    asm.load(R9, R15, slot(CONTENTS));
    asm.load_scaled(R9, R9, R13);
    asm.alu(Alu::Cmp, R9, R11);
    asm.jump_if(NOT_EQUAL, other);
    asm.ret();
    asm.bind(unknown);
    // This page walk has no additional effect: the interpreter's fetch of the instruction would begin with the same
    // walk.
    walk_for_code(asm, again);
    asm.bind(other);
    leave_from_site(asm, R11, base);
    leave_with(asm, SECOND, 8, leave);
}

/// Emits, within a routine, a page walk for code at the linear address in R13, and a jump to `again` if the page is
/// executable. Preserves R11 and the registers that every call preserves.
pub(super) fn walk_for_code(asm: &mut Asm, again: Label) {
    spill(asm);
    give_mxcsr_back(asm);
    asm.push(R11);
    asm.add_to(RDI, R15, -MIDDLE);
    asm.copy(RSI, R13);
    asm.set(RAX, missed_exec as *const () as u64);
    asm.call(RAX);
    asm.test(2, RAX, RAX);
    asm.pop(R11);
    fill(asm);
    asm.jump_if(NOT_EQUAL, again);
}

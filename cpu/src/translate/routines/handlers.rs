//! Routines that call handlers (functions of the CPU that execute one operation).

use super::boundary::{call, leave_from_site, leave_with};
use crate::translate::asm::{Alu, Asm, EQUAL, NOT_EQUAL, R11, R13, RSP};
use crate::translate::enter::{call_op, call_string};
use crate::translate::{NEXT, STOP_SHIFT, STOPPED};

/// Emits the routine `handler`.
pub(super) fn handler(asm: &mut Asm, base: u64, leave: u64) {
    call(asm, call_op as *const () as u64);
    asm.test(2, R13, R13);
    let ended = asm.label();
    asm.jump_if(NOT_EQUAL, ended);
    asm.ret();
    asm.bind(ended);
    stopped(asm, base, leave);
}

/// Emits the routine `string`.
pub(super) fn string(asm: &mut Asm, base: u64, leave: u64) {
    call(asm, call_string as *const () as u64);
    asm.test(2, R13, R13);
    let (ended, again) = (asm.label(), asm.label());
    asm.jump_if(NOT_EQUAL, ended);
    asm.ret();
    asm.bind(ended);
    asm.alu_imm(Alu::Cmp, R13, 1);
    asm.jump_if(EQUAL, again);
    stopped(asm, base, leave);
    asm.bind(again);
    asm.add_to(RSP, RSP, 8);
    asm.set(R11, u64::from(NEXT));
    asm.jump_to(leave);
}

/// Emits the exit for a handler that ended its block. R13 is the number of the `Stop`.
fn stopped(asm: &mut Asm, base: u64, leave: u64) {
    asm.shift_left(R13, STOP_SHIFT - 8);
    leave_from_site(asm, R11, base);
    asm.alu(Alu::Add, R11, R13);
    leave_with(asm, STOPPED, 8, leave);
}

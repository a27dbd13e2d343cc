//! The boundary between translated code and the host's functions: entry to translated code, the ways to leave it, and
//! calls of functions of [`enter`](crate::translate::enter).

use super::mxcsr::give_mxcsr_back;
use crate::translate::asm::{Alu, Asm, Host, R10, R11, R12, R13, R14, R15, RAX, RDI, RSI, RSP};
use crate::translate::frame::{MIDDLE, slot};
use crate::translate::registers::FIXED;

/// Host registers that the ABI requires a function to preserve.
const SAVED: [Host; 6] = [Host(3), Host(5), R12, R13, R14, R15];

/// Emits loads of all fixed guest registers. Changes no flags.
pub(super) fn fill(asm: &mut Asm) {
    FIXED.iter().zip(0..).for_each(|(&host, guest)| asm.load(host, R15, slot(guest)));
}

/// Emits stores of all fixed guest registers. Other code can then see them, and calls may clobber some of them. Changes
/// no flags.
pub(super) fn spill(asm: &mut Asm) {
    FIXED.iter().zip(0..).for_each(|(&host, guest)| asm.store(R15, slot(guest), host));
}

/// Emits the routine `enter`.
pub(super) fn enter(asm: &mut Asm) {
    SAVED.iter().for_each(|&reg| asm.push(reg));
    asm.add_to(RSP, RSP, -8);
    asm.add_to(R15, RDI, MIDDLE);
    asm.copy(R11, RSI);
    fill(asm);
    asm.jump_register(R11);
}

/// Emits the routine `leave`.
pub(super) fn leave(asm: &mut Asm) {
    spill(asm);
    give_mxcsr_back(asm);
    asm.copy(RAX, R11);
    asm.add_to(RSP, RSP, 8);
    SAVED.iter().rev().for_each(|&reg| asm.pop(reg));
    asm.ret();
}

/// Emits an exit. The word to return is R11 shifted left by `shift`, plus the reason `why`.
pub(super) fn leave_with(asm: &mut Asm, why: u8, shift: u8, leave: u64) {
    asm.shift_left(R11, shift);
    asm.alu_imm(Alu::Add, R11, i32::from(why));
    asm.jump_to(leave);
}

/// Emits code that pops the return address: `at` = its offset from the start of translated code.
pub(super) fn leave_from_site(asm: &mut Asm, at: Host, base: u64) {
    asm.pop(at);
    asm.set(R10, base);
    asm.alu(Alu::Sub, at, R10);
}

/// Emits a call of a function of [`enter`](crate::translate::enter) with the core and the word in R11. R13 = result of
/// the function.
pub(super) fn call(asm: &mut Asm, function: u64) {
    spill(asm);
    give_mxcsr_back(asm);
    asm.add_to(RDI, R15, -MIDDLE);
    asm.copy(RSI, R11);
    asm.add_to(RSP, RSP, -8);
    asm.set(RAX, function);
    asm.call(RAX);
    asm.add_to(RSP, RSP, 8);
    asm.copy(R13, RAX);
    fill(asm);
}

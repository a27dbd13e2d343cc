//! Routines for accesses to guest memory: the lookup in the TLB, and the page walk after a miss.

use super::boundary::{fill, leave_from_site, leave_with, spill};
use super::mxcsr::{resume_mxcsr, suspend_mxcsr};
use super::uppers::{self, VECTOR_BYTES};
use crate::mem::tlb;
use crate::translate::MISSED;
use crate::translate::asm::{
    Alu, Asm, EQUAL, Host, NOT_EQUAL, R10, R11, R13, R15, RAX, RCX, RDI, RDX, RSI, RSP,
};
use crate::translate::enter::missed;
use crate::translate::frame::{MIDDLE, TABLE};
use crate::translate::registers::POOL;

/// Argument of [`missed`] that means: a page walk cannot help, so the interpreter must execute the instruction.
const IMPOSSIBLE: u64 = 0;

/// `entry` = address of the TLB entry for the linear address in R13.
pub(super) fn entry(asm: &mut Asm, entry: Host, mask: usize) {
    asm.copy32(entry, R13);
    asm.shift_right32(entry, 12 - tlb::ENTRY_SHIFT);
    asm.and32(entry, (mask << tlb::ENTRY_SHIFT) as u32);
    asm.alu_memory(Alu::Add, entry, R15, TABLE);
}

/// Emits a routine of `read`, `write` or `stack`, for an access of `size` bytes. With `aligned`, the address must be a
/// multiple of `size`.
pub(super) fn check(asm: &mut Asm, mask: usize, size: u8, aligned: bool, write: bool, miss: u64) {
    let (other, unaligned) = (asm.label(), asm.label());
    if aligned {
        asm.test_byte(R13, size - 1);
        asm.jump_if(NOT_EQUAL, unaligned);
    }
    entry(asm, R11, mask);
    asm.add_to(R10, R13, i32::from(size) - 1);
    asm.alu_imm(Alu::And, R10, -4096);
    let tag = if write { tlb::WRITE } else { tlb::READ };
    asm.alu_memory(Alu::Cmp, R10, R11, tag as i32);
    asm.jump_if(NOT_EQUAL, other);
    asm.alu_memory(Alu::Add, R13, R11, tlb::ADDEND as i32);
    asm.ret();
    asm.bind(other);
    asm.set(R10, u64::from(size) << 1 | u64::from(write));
    asm.jump_to(miss);
    asm.bind(unaligned);
    interpret(asm, miss);
}

/// Emits the routine `interpret`.
pub(super) fn interpret(asm: &mut Asm, miss: u64) {
    asm.set(R10, IMPOSSIBLE);
    asm.jump_to(miss);
}

/// Emits the handling of an access that misses the TLB. R10 is the last argument of [`missed`].
pub(super) fn miss(asm: &mut Asm, base: u64, leave: u64) {
    spill(asm);
    POOL.iter().rev().for_each(|&reg| asm.push(reg));
    asm.add_to(RSP, RSP, -VECTOR_BYTES);
    uppers::push_vectors(asm);
    asm.add_to(RDI, R15, -MIDDLE);
    asm.copy(RSI, RSP);
    asm.copy(RDX, R13);
    asm.copy(RCX, R10);
    suspend_mxcsr(asm);
    asm.set(RAX, missed as *const () as u64);
    asm.call(RAX);
    // The block goes on to rely on the guest's MXCSR.
    resume_mxcsr(asm);
    asm.copy(R13, RAX);
    uppers::load_vectors(asm);
    asm.add_to(RSP, RSP, VECTOR_BYTES);
    asm.test(3, R13, R13);
    POOL.iter().for_each(|&reg| asm.pop(reg));
    fill(asm);
    let failed = asm.label();
    asm.jump_if(EQUAL, failed);
    asm.ret();
    asm.bind(failed);
    uppers::leave(asm);
    leave_from_site(asm, R11, base);
    leave_with(asm, MISSED, 8, leave);
}

//! The routines for AVX, and the host's vector registers around a call of a function in the middle of a block.

use std::mem::offset_of;

use crate::core::{Core, cr0, cr4};
use crate::state::xcr0;
use crate::translate::asm::{Alu, Asm, EQUAL, NOT_EQUAL, R10, R15, RSP};
use crate::translate::frame::{UPPERS_IN_USE, field};
use crate::translate::xmm::{host_has_uppers, upper_place};

/// Size of the sixteen YMM registers in bytes.
pub(super) const VECTOR_BYTES: i32 = 32 * 16;

/// Emits the routine `avx`.
pub(super) fn avx(asm: &mut Asm, interpret: u64) {
    let not = asm.label();
    asm.test_memory(R15, field(offset_of!(Core, cr0)), cr0::TS as u8);
    asm.jump_short_if(NOT_EQUAL, not);
    asm.test_memory(R15, field(offset_of!(Core, cr4)) + 2, (cr4::OSXSAVE >> 16) as u8);
    asm.jump_short_if(EQUAL, not);
    asm.load32(R10, R15, field(offset_of!(Core, xcr0)));
    asm.and32(R10, xcr0::AVX_STATE as u32);
    asm.alu_imm(Alu::Cmp, R10, xcr0::AVX_STATE as i32);
    asm.jump_short_if(NOT_EQUAL, not);
    asm.ret();
    asm.bind(not);
    asm.jump_to(interpret);
}

/// Emits the routine `zero_uppers`. It runs after the host's VZEROUPPER, so it may use legacy SSE.
pub(super) fn zero(asm: &mut Asm) {
    // The block's call leaves RSP a multiple of 16 plus 8.
    asm.add_to(RSP, RSP, -24);
    asm.store_vector(RSP, 0, 0);
    asm.zero_vector(0);
    (0..16).for_each(|n| asm.store_vector(R15, upper_place(n), 0));
    asm.load_vector(0, RSP, 0);
    asm.add_to(RSP, RSP, 24);
    asm.ret();
}

/// Emits stores of the host's vector registers at RSP, in [`VECTOR_BYTES`]. Stores upper halves, and sets them to zero
/// for the function that is called next, only if they are in use.
pub(super) fn push_vectors(asm: &mut Asm) {
    let (narrow, done) = (asm.label(), asm.label());
    if host_has_uppers() {
        asm.test_memory(R15, UPPERS_IN_USE, 1);
        asm.jump_if(EQUAL, narrow);
        (0..16).for_each(|n| asm.store_whole(RSP, 32 * i32::from(n), n));
        asm.zero_uppers();
        asm.jump(done);
        asm.bind(narrow);
    }
    (0..16).for_each(|n| asm.store_vector(RSP, 32 * i32::from(n), n));
    asm.bind(done);
}

/// Emits loads of the host's vector registers after [`push_vectors`]. Upper halves that are not in use become zero.
pub(super) fn load_vectors(asm: &mut Asm) {
    if !host_has_uppers() {
        return (0..16).for_each(|n| asm.load_vector(n, RSP, 32 * i32::from(n)));
    }
    let (narrow, done) = (asm.label(), asm.label());
    asm.test_memory(R15, UPPERS_IN_USE, 1);
    asm.jump_if(EQUAL, narrow);
    (0..16).for_each(|n| asm.load_whole(n, RSP, 32 * i32::from(n)));
    asm.jump(done);
    asm.bind(narrow);
    (0..16).for_each(|n| asm.load_vector_vex(n, RSP, 32 * i32::from(n)));
    asm.bind(done);
}

/// Emits code that sets the upper halves of the host's YMM registers to zero, before translated code is left in the
/// middle of a block.
pub(super) fn leave(asm: &mut Asm) {
    if host_has_uppers() {
        asm.zero_uppers();
        asm.store8_imm(R15, UPPERS_IN_USE, 0);
    }
}

//! The routines before SSE instructions, and the exchange of the guest's MXCSR for the host's.
//!
//! While translated code executes floating-point instructions, the guest's MXCSR is in the host's register. The host's
//! own MXCSR must be back before each function of the host and each exit from translated code.

use std::mem::offset_of;

use crate::core::{Core, cr0, cr4};
use crate::host_fp::sse::MASKS;
use crate::translate::asm::{Alu, Asm, EQUAL, Label, NOT_EQUAL, R10, R15};
use crate::translate::frame::{HOST_MXCSR, MXCSR, MXCSR_IS_GUESTS, field};

/// Emits the routine `vectors`.
pub(super) fn vectors(asm: &mut Asm, interpret: u64) {
    let not = asm.label();
    jump_unless_vectors(asm, not);
    asm.ret();
    asm.bind(not);
    asm.jump_to(interpret);
}

/// Emits the routine `floating`.
pub(super) fn floating(asm: &mut Asm, interpret: u64) {
    let not = asm.label();
    jump_unless_vectors(asm, not);
    asm.load32(R10, R15, MXCSR);
    asm.and32(R10, MASKS);
    asm.alu_imm(Alu::Cmp, R10, MASKS as i32);
    asm.jump_if(NOT_EQUAL, not);
    asm.store8_imm(R15, MXCSR_IS_GUESTS, 1);
    asm.load_mxcsr(R15, MXCSR);
    asm.ret();
    asm.bind(not);
    asm.jump_to(interpret);
}

/// Emits a jump that is taken if the guest may not use XMM registers.
fn jump_unless_vectors(asm: &mut Asm, not: Label) {
    let (cr0, cr4) = (field(offset_of!(Core, cr0)), field(offset_of!(Core, cr4)));
    asm.test_memory(R15, cr0, (cr0::EM | cr0::TS) as u8);
    asm.jump_if(NOT_EQUAL, not);
    asm.test_memory(R15, cr4 + 1, (cr4::OSFXSR >> 8) as u8);
    asm.jump_if(EQUAL, not);
}

/// Emits code that gives the host its MXCSR back, and stores the guest's, if the guest's is in the host's register.
/// Changes only flags.
pub(super) fn give_mxcsr_back(asm: &mut Asm) {
    if_guests(asm, |asm| {
        asm.store_mxcsr(R15, MXCSR);
        asm.load_mxcsr(R15, HOST_MXCSR);
        asm.store8_imm(R15, MXCSR_IS_GUESTS, 0);
    });
}

/// Like [`give_mxcsr_back`], for a function after which [`resume_mxcsr`] loads the guest's MXCSR again.
pub(super) fn suspend_mxcsr(asm: &mut Asm) {
    if_guests(asm, |asm| {
        asm.store_mxcsr(R15, MXCSR);
        asm.load_mxcsr(R15, HOST_MXCSR);
    });
}

/// Emits code that loads the guest's MXCSR again after [`suspend_mxcsr`], if it was in the host's register. Changes
/// only flags.
pub(super) fn resume_mxcsr(asm: &mut Asm) {
    if_guests(asm, |asm| asm.load_mxcsr(R15, MXCSR));
}

/// Emits code that executes `body` if the guest's MXCSR is in the host's register, or was there before
/// [`suspend_mxcsr`].
fn if_guests(asm: &mut Asm, body: impl FnOnce(&mut Asm)) {
    let hosts = asm.label();
    asm.test_memory(R15, MXCSR_IS_GUESTS, 1);
    asm.jump_short_if(EQUAL, hosts);
    body(asm);
    asm.bind(hosts);
}

//! Routines that execute CLI and STI, which change IF.

use std::mem::offset_of;

use crate::core::Core;
use crate::flags::bits;
use crate::translate::asm::{Alu, Asm, Label, NOT_EQUAL, R15};
use crate::translate::frame::{RFLAGS, field};

/// Displacement of byte 1 of RFLAGS, which holds IF.
const IF_BYTE: i32 = RFLAGS + 1;
/// IF as a bit of this byte.
const IF: u8 = (bits::IF >> 8) as u8;

/// Emits the routine `cli`.
pub(super) fn cli(asm: &mut Asm, interpret: u64) {
    let other = asm.label();
    jump_unless_ring_0(asm, other);
    asm.alu8_memory_imm(Alu::And, R15, IF_BYTE, !IF);
    asm.ret();
    asm.bind(other);
    asm.jump_to(interpret);
}

/// Emits the routine `sti`.
pub(super) fn sti(asm: &mut Asm, interpret: u64) {
    let other = asm.label();
    jump_unless_ring_0(asm, other);
    asm.test_memory(R15, field(offset_of!(Core, window)), 1);
    asm.jump_short_if(NOT_EQUAL, other);
    asm.alu8_memory_imm(Alu::Or, R15, IF_BYTE, IF);
    asm.ret();
    asm.bind(other);
    asm.jump_to(interpret);
}

/// Emits a jump that is taken if the CPL is not 0. At CPL 0, the guest has the privilege for every instruction.
fn jump_unless_ring_0(asm: &mut Asm, other: Label) {
    asm.test_memory(R15, field(offset_of!(Core, cpl)), 3);
    asm.jump_short_if(NOT_EQUAL, other);
}

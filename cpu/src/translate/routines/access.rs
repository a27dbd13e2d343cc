//! Accesses to guest memory: the TLB entry of an address, and the page walk after a miss.

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

/// An access of translated code to guest memory.
#[derive(Debug, Clone, Copy)]
pub(in crate::translate) struct Access {
    /// Number of bytes, 1 to 64.
    pub size: u8,
    /// True if the address must be a multiple of the size, which is then a power of two.
    pub aligned: bool,
    pub write: bool,
}

impl Access {
    /// Returns the access as the last argument of [`missed`].
    pub(in crate::translate) fn word(self) -> u64 {
        u64::from(self.size) << 2 | u64::from(self.aligned) << 1 | u64::from(self.write)
    }
}

/// `entry` = address of the TLB entry for the linear address in R13.
pub(in crate::translate) fn entry(asm: &mut Asm, entry: Host, mask: usize) {
    asm.copy32(entry, R13);
    asm.shift_right32(entry, SHIFT);
    masked(asm, entry, mask);
}

/// Like [`entry`], in fewer instructions where the host has RORX.
pub(in crate::translate) fn quick_entry(asm: &mut Asm, entry: Host, mask: usize) {
    // The mask must exclude the bits that a rotation moves to the top.
    if mask.leading_zeros() < usize::BITS - 20 || !std::is_x86_feature_detected!("bmi2") {
        return self::entry(asm, entry, mask);
    }
    asm.rotated32(entry, R13, SHIFT);
    masked(asm, entry, mask);
}

/// Distance from the page number in an address to the offset of a TLB entry.
const SHIFT: u8 = 12 - tlb::ENTRY_SHIFT;

fn masked(asm: &mut Asm, entry: Host, mask: usize) {
    asm.and32(entry, (mask << tlb::ENTRY_SHIFT) as u32);
    asm.alu_memory(Alu::Add, entry, R15, TABLE);
}

/// Emits the routine `interpret`.
pub(super) fn interpret(asm: &mut Asm, miss: u64) {
    asm.set(R10, IMPOSSIBLE);
    asm.jump_to(miss);
}

/// Emits a search of the TLB's second way (`Tlb::take_second`), and the return to translated code if the page is there.
fn take_second(asm: &mut Asm, mask: usize) {
    const { assert!(tlb::READ == 0 && tlb::WRITE == 8) };
    let second = ((mask + 1) << tlb::ENTRY_SHIFT) as i32;
    let (elsewhere, other, any) = (asm.label(), asm.label(), asm.label());
    asm.alu_imm(Alu::Cmp, R10, IMPOSSIBLE as i32);
    asm.jump_if(EQUAL, elsewhere);
    asm.push(RAX);
    asm.push(RCX);
    // RAX = size - 1, RCX = the access.
    asm.copy(RAX, R10);
    asm.shift_right(RAX, 2);
    asm.add_to(RAX, RAX, -1);
    asm.copy(RCX, R10);
    asm.test_byte(RCX, 2);
    asm.jump_if(EQUAL, any);
    asm.test(3, R13, RAX);
    asm.jump_if(NOT_EQUAL, other);
    asm.bind(any);
    // RAX = the page of the last byte, RCX = address of the tag.
    asm.alu(Alu::Add, RAX, R13);
    asm.alu_imm(Alu::And, RAX, -4096);
    asm.and32(RCX, 1);
    asm.sum(RCX, R11, RCX, 3, second);
    asm.alu_memory(Alu::Cmp, RAX, RCX, 0);
    asm.jump_if(NOT_EQUAL, other);
    for word in (0..size_of::<[u64; 4]>() as i32).step_by(8) {
        asm.load(RAX, R11, word);
        asm.load(RCX, R11, second + word);
        asm.store(R11, word, RCX);
        asm.store(R11, second + word, RAX);
    }
    asm.alu_memory(Alu::Add, R13, R11, tlb::ADDEND as i32);
    asm.pop(RCX);
    asm.pop(RAX);
    asm.ret();
    asm.bind(other);
    asm.pop(RCX);
    asm.pop(RAX);
    asm.bind(elsewhere);
}

/// Emits the routine `miss`. R10 is the last argument of [`missed`]. Unless R10 is [`IMPOSSIBLE`], R11 is the address of
/// the entry that has been looked up.
pub(super) fn miss(asm: &mut Asm, mask: usize, base: u64, leave: u64) {
    take_second(asm, mask);
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

//! Routines for calls, returns and jumps to other pages. They find the target's translation in the tables of recent
//! targets ([`crate::core::native`]), or through the TLB and the jump table.

use std::mem::offset_of;

use super::access::entry;
use super::boundary::leave_with;
use super::code_pages::walk_for_code;
use crate::core::Core;
use crate::core::native::{HOP_MASK, HOP_SHIFT, Hop, Native, PAGE_MASK, PAGE_SHIFT, Page, RETURNS, Return};
use crate::mem::tlb;
use crate::op::slot::{CONTENTS, HOPS, JUMPS, LEFT, PAGE, PAGES, RAM};
use crate::translate::asm::{Alu, Asm, EQUAL, Host, Label, NOT_EQUAL, R9, R10, R11, R12, R13, R14, R15, RSP};
use crate::translate::frame::{EPOCH, RIP, field, slot};
use crate::translate::registers::STACK;
use crate::translate::{JUMP_MASK, JUMP_SHIFT, Jump, MISSED_FAR, NEXT};

/// Displacements from R15 of the ring of calls, and of the offset of its most recent entry.
const RETURNS_AT: i32 = field(offset_of!(Core, native) + offset_of!(Native, returns));
const TOP: i32 = field(offset_of!(Core, native) + offset_of!(Native, top));
/// Mask that wraps offsets in the ring around.
const RETURNS_MASK: u32 = ((RETURNS - 1) * size_of::<Return>()) as u32;
const _: () = assert!(RETURNS.is_power_of_two() && size_of::<Return>().is_power_of_two());

/// Emits what the routine `called` does.
pub(in crate::translate) fn record_call(asm: &mut Asm) {
    asm.load(R11, R15, TOP);
    asm.add_to(R11, R11, size_of::<Return>() as i32);
    asm.and32(R11, RETURNS_MASK);
    asm.store(R15, TOP, R11);
    asm.sum(R13, R15, R11, 0, RETURNS_AT);
    asm.load(R11, R15, EPOCH);
    asm.store(R13, offset_of!(Return, va) as i32, R10);
    asm.store(R13, offset_of!(Return, epoch) as i32, R11);
    asm.store(R13, offset_of!(Return, code) as i32, R12);
}

/// Emits the usual case of the routine `returns`. Goes to `other` if the ring of recent calls does not have the return.
pub(in crate::translate) fn take_return(asm: &mut Asm, other: Label) {
    asm.load(R12, R15, TOP);
    asm.sum(R9, R15, R12, 0, RETURNS_AT);
    asm.add_to(R12, R12, -(size_of::<Return>() as i32));
    asm.and32(R12, RETURNS_MASK);
    asm.store(R15, TOP, R12);
    asm.load(R12, R9, offset_of!(Return, code) as i32);
    jump_unless_equal(asm, R13, R9, offset_of!(Return, va) as i32, other);
    asm.load(R10, R15, EPOCH);
    jump_unless_equal(asm, R10, R9, offset_of!(Return, epoch) as i32, other);
    asm.test(3, R12, R12);
    asm.jump_if(EQUAL, other);
    asm.copy(STACK, R14);
    asm.alu_imm(Alu::And, R13, -4096);
    asm.store(R15, slot(PAGE), R13);
}

/// Emits a jump to `other` unless a register equals the word at `base + disp`.
fn jump_unless_equal(asm: &mut Asm, register: Host, base: Host, disp: i32, other: Label) {
    asm.alu_memory(Alu::Cmp, register, base, disp);
    asm.jump_if(NOT_EQUAL, other);
}

/// Emits a routine that does what `usual` emits, and otherwise goes to the routine `elsewhere`.
pub(super) fn or_elsewhere(asm: &mut Asm, elsewhere: u64, usual: impl FnOnce(&mut Asm, Label)) {
    let other = asm.label();
    usual(asm, other);
    asm.ret();
    asm.bind(other);
    asm.jump_to(elsewhere);
}

/// Emits the usual case of a routine of `hop`. Goes to `other` if the table of recent jumps does not have the target,
/// with the linear address still in R13. With `stack`, it sets the stack pointer from R14.
pub(in crate::translate) fn find_hop(asm: &mut Asm, stack: bool, other: Label) {
    hop_entry(asm, R12);
    jump_unless_equal(asm, R13, R12, offset_of!(Hop, va) as i32, other);
    asm.load(R10, R15, EPOCH);
    jump_unless_equal(asm, R10, R12, offset_of!(Hop, epoch) as i32, other);
    if stack {
        asm.copy(STACK, R14);
    }
    asm.alu_imm(Alu::And, R13, -4096);
    asm.store(R15, slot(PAGE), R13);
    asm.load(R12, R12, offset_of!(Hop, code) as i32);
}

/// Emits a routine of `direct`.
pub(super) fn direct(asm: &mut Asm, stack: bool, hop: u64, far: u64) {
    let (unknown, other) = (asm.label(), asm.label());
    check_page(asm, stack, unknown, other);
    asm.ret();
    for (label, routine) in [(unknown, far), (other, hop)] {
        asm.bind(label);
        asm.add_to(RSP, RSP, 8);
        asm.call_to(routine);
        asm.jump_register(R12);
    }
}

/// Emits the usual case of a routine of `direct`. Goes to `unknown` if the table of recent pages does not have the
/// page, and to `other` if the page has another content number. With `stack`, it sets the stack pointer from R14.
pub(in crate::translate) fn check_page(asm: &mut Asm, stack: bool, unknown: Label, other: Label) {
    page_entry(asm, R9);
    asm.copy(R10, R13);
    asm.alu_imm(Alu::And, R10, -4096);
    jump_unless_equal(asm, R10, R9, offset_of!(Page, va) as i32, unknown);
    jump_unless_equal(asm, R12, R9, offset_of!(Page, number) as i32, other);
    asm.load(R12, R15, EPOCH);
    jump_unless_equal(asm, R12, R9, offset_of!(Page, epoch) as i32, unknown);
    if stack {
        asm.copy(STACK, R14);
    }
    asm.store(R15, slot(PAGE), R10);
}

/// Emits the slow path of `hop`: it looks the target up in the TLB and the jump table, and updates the tables of recent
/// pages and jumps.
pub(super) fn far(asm: &mut Asm, mask: usize, stack: bool, leave: u64) {
    let (again, unknown, behind) = (asm.label(), asm.label(), asm.label());
    asm.bind(again);
    entry(asm, R12, mask);
    asm.copy(R10, R13);
    asm.alu_imm(Alu::And, R10, -4096);
    jump_unless_equal(asm, R10, R12, tlb::EXEC as i32, unknown);
    if stack {
        asm.copy(STACK, R14);
    }
    asm.store(R15, slot(PAGE), R10);
    asm.load(R12, R12, tlb::ADDEND as i32);
    asm.alu(Alu::Add, R12, R13);
    // R9 = the target's place (content number and offset in the page), as computed by `decode::cache::place`.
    asm.alu_memory(Alu::Sub, R12, R15, slot(RAM));
    asm.copy(R9, R12);
    asm.and32(R9, 0xfff);
    asm.shift_right(R12, 12);
    asm.load(R14, R15, slot(CONTENTS));
    asm.load_scaled(R12, R14, R12);
    page_entry(asm, R14);
    asm.store(R14, offset_of!(Page, va) as i32, R10);
    asm.load(R10, R15, EPOCH);
    asm.store(R14, offset_of!(Page, epoch) as i32, R10);
    asm.store(R14, offset_of!(Page, number) as i32, R12);
    asm.shift_left(R12, 12);
    asm.alu(Alu::Add, R9, R12);
    entry_for(asm, R14, R9, JUMP_MASK, JUMP_SHIFT, slot(JUMPS));
    jump_unless_equal(asm, R9, R14, offset_of!(Jump, place) as i32, behind);
    asm.load(R12, R14, offset_of!(Jump, code) as i32);
    hop_entry(asm, R14);
    asm.load(R10, R15, EPOCH);
    asm.store(R14, offset_of!(Hop, va) as i32, R13);
    asm.store(R14, offset_of!(Hop, epoch) as i32, R10);
    asm.store(R14, offset_of!(Hop, code) as i32, R12);
    asm.ret();

    // No translation is known for the target.
    asm.bind(behind);
    asm.add_to(RSP, RSP, 8);
    asm.store(R15, RIP, R13);
    asm.set(R11, u64::from(NEXT));
    asm.jump_to(leave);

    asm.bind(unknown);
    // If no instruction is left, the CPU stops here and must not fetch the next instruction: the page walk could set
    // accessed bits.
    let failed = asm.label();
    asm.alu_memory_imm(Alu::Cmp, R15, slot(LEFT), 0);
    asm.jump_if(EQUAL, failed);
    walk_for_code(asm, again);
    asm.bind(failed);
    asm.add_to(RSP, RSP, 8);
    // A jump to a canonical address has retired, so execution continues at RIP. A jump to any other address faults, so
    // the interpreter must execute it.
    asm.store(R15, RIP, R13);
    let fault = asm.label();
    asm.copy(R10, R13);
    asm.shift_left(R10, 16);
    asm.shift_right_signed(R10, 16);
    asm.alu(Alu::Cmp, R10, R13);
    asm.jump_if(NOT_EQUAL, fault);
    if stack {
        asm.copy(STACK, R14);
    }
    asm.set(R11, u64::from(NEXT));
    asm.jump_to(leave);
    asm.bind(fault);
    leave_with(asm, MISSED_FAR, 8, leave);
}

/// `entry` = address of the entry for the linear address in R13 in the table of recent jumps.
fn hop_entry(asm: &mut Asm, entry: Host) {
    entry_for(asm, entry, R13, HOP_MASK, HOP_SHIFT, slot(HOPS));
}

/// `entry` = address of the entry for the linear address in R13 in the table of recent pages.
fn page_entry(asm: &mut Asm, entry: Host) {
    asm.copy32(entry, R13);
    asm.shift_right32(entry, 12 - PAGE_SHIFT);
    asm.and32(entry, (PAGE_MASK << PAGE_SHIFT) as u32);
    asm.alu_memory(Alu::Add, entry, R15, slot(PAGES));
}

/// `entry` = address of the entry for a key, in the table whose address is at displacement `table` from R15.
/// `translate::jump_slot` and [`crate::edges`] compute the same index.
pub(super) fn entry_for(asm: &mut Asm, entry: Host, key: Host, mask: usize, shift: u8, table: i32) {
    asm.copy(entry, key);
    asm.shift_right(entry, 12);
    asm.xor32(entry, key);
    asm.and32(entry, mask as u32);
    asm.shift_left(entry, shift);
    asm.alu_memory(Alu::Add, entry, R15, table);
}

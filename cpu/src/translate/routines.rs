//! Code that all translations share: the way in and out, accesses to guest memory, jumps to other pages, and calls of what is
//! not translated. Being called for them, a translation stays small: on a guest that does many different things, how fast
//! it runs is decided by how much of its code the host's caches hold.
//!
//! Registers: R15 is in the middle of the CPU's state ([`super::frame`]), R14 the TLB's table for the current mode, R12 the
//! instructions left before the limit. R10, R11 and R13 hold nothing for long. The others hold guest registers.

use std::mem::offset_of;

use super::asm::{
    Alu, Asm, EQUAL, Host, Label, NOT_EQUAL, R10, R11, R12, R13, R14, R15, RAX, RCX, RDI, RDX, RSI, RSP,
};
use super::enter::{call_op, call_string, missed, missed_exec, note_edge, read_flags};
use super::frame::{MIDDLE, RIP, TABLE, field, slot};
use super::late;
use super::lazy::{self, Operation};
use super::memory::CodeMemory;
use super::{
    CELL_SHIFT, FULL, JUMP_SHIFT, MISSED, MISSED_FAR, NEXT, Native, RETURNS, Return, SECOND, STOP_SHIFT,
    STOPPED, UNLINKED,
};
use crate::core::{Core, cr0, cr4};
use crate::edges::{NUMBER_ROTATION, TABLE_MASK, TABLE_SHIFT};
use crate::mem::tlb;
use crate::op::slot::{CONTENTS, EDGES, FROM, JUMPS, KIND, LEFT, PAGE, PAGE_FAR, RAM};

/// What the host's ABI wants to be saved.
const SAVED: [Host; 6] = [Host(3), Host(5), R12, R13, R14, R15];
/// Host registers that may hold guest registers, in the order in which [`missed`] gets them.
pub(super) const HOLDERS: [u8; 9] = [0, 1, 2, 3, 5, 6, 7, 8, 9];
/// Those of them that a call does not preserve.
const VOLATILE: [u8; 7] = [0, 1, 2, 6, 7, 8, 9];

/// How wide an access is; the number is the binary logarithm of its bytes, or 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Byte,
    Word,
    Dword,
    Qword,
    Vector,
    /// A vector, at a multiple of 16.
    Aligned,
}

impl Width {
    const ALL: [Width; 6] =
        [Width::Byte, Width::Word, Width::Dword, Width::Qword, Width::Vector, Width::Aligned];

    /// For so many bytes: a power of two up to 16.
    pub(super) fn of(bytes: usize) -> Width {
        Width::ALL[bytes.trailing_zeros().min(4) as usize]
    }
    fn bytes(self) -> u8 {
        if self == Width::Aligned { 16 } else { 1 << self as u8 }
    }
}

/// So many words are pushed or popped at once.
pub(super) const STACK_WORDS_MAX: usize = 8;

/// What the host's registers hold where an access misses.
#[repr(C)]
pub(super) struct Held {
    pub vectors: [u128; 16],
    /// As [`HOLDERS`] numbers them.
    pub general: [u64; HOLDERS.len()],
}

/// Bytes of all XMM registers.
const VECTOR_BYTES: i32 = 16 * 16;
/// What [`missed`] is asked for where nothing helps.
const IMPOSSIBLE: u64 = 0;

/// Where each of them lies.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Routines {
    /// `extern fn(core, code) -> word`.
    pub enter: u64,
    /// RAX is the word that tells why.
    pub leave: u64,
    /// By [`Width`]: R13 = the host address of what is at the linear address in R13, to be read.
    pub read: [u64; Width::ALL.len()],
    /// The same, to be written.
    pub write: [u64; Width::ALL.len()],
    /// As `read` and `write`, for so many words of the stack.
    pub stack: [[u64; STACK_WORDS_MAX + 1]; 2],
    /// Go on if the linear address in R13 is known to be executable. R13 is not kept.
    pub executable: u64,
    /// Go on if the guest may use XMM registers.
    pub vectors: u64,
    /// Get ready to go to the linear address in R13: RDI = its place. R11 is the site. The second one does the same; RSI is
    /// the stack pointer from then on.
    pub place: [u64; 2],
    /// Behind these, the cell at RCX leads somewhere else: go there.
    pub link: u64,
    /// A call is about to be made: its return address is in R10, and RCX the cell for what comes behind it. RSI and RDI are kept.
    pub called: u64,
    /// As the second `place`, and RCX = the last [`Return`], which is the last no longer.
    pub returns: u64,
    /// Behind this, it leads somewhere else: go there.
    pub unpaired: u64,
    /// As `place`, and RAX = the entry of the table of jumps that leads there.
    pub far: [u64; 2],
    /// Have a handler execute an operation: ESI is its index, and the instructions of its block.
    pub handler: u64,
    /// The same for a repeated string instruction.
    pub string: u64,
    /// Go on if the page at R13 holds what R11 is the number of, and may be executed.
    pub second: u64,
    /// A branch at the place in R10, which is not kept, went to the one in R11.
    pub edge: u64,
    /// The host's flags become the guest's, as far as a condition looks.
    pub flags: u64,
    /// The host's CF becomes the guest's.
    pub carry: u64,
    /// Block R11 does not fit before the limit; it was charged for.
    pub full: u64,
    /// Nothing is known of where the cell at R11 leads.
    pub unlinked: u64,
}

impl Routines {
    /// Emit all. `mask` is the TLB's entries, minus one; `words` is where cells lie.
    pub(super) fn new(memory: &mut CodeMemory, mask: usize, words: u64) -> Routines {
        let (mut asm, mut routines) = (Asm::default(), Routines::default());
        let base = memory.base();
        let mut emit = |body: &mut dyn FnMut(&mut Asm)| {
            asm.clear(memory.next());
            body(&mut asm);
            memory.put(asm.finish())
        };
        routines.enter = emit(&mut enter);
        let leave = emit(&mut leave);
        routines.leave = leave;
        let miss = emit(&mut |asm| miss(asm, base, leave));
        for width in Width::ALL {
            let (size, aligned) = (width.bytes(), width == Width::Aligned);
            routines.read[width as usize] = emit(&mut |asm| check(asm, mask, size, aligned, false, miss));
            routines.write[width as usize] = emit(&mut |asm| check(asm, mask, size, aligned, true, miss));
        }
        for words in 2..=STACK_WORDS_MAX {
            for write in [false, true] {
                routines.stack[usize::from(write)][words] =
                    emit(&mut |asm| check(asm, mask, 8 * words as u8, false, write, miss));
            }
        }
        routines.executable = emit(&mut |asm| executable(asm, mask, miss));
        routines.vectors = emit(&mut |asm| vectors(asm, miss));
        for stack in [false, true] {
            routines.place[usize::from(stack)] = emit(&mut |asm| far(asm, mask, stack, Then::Go, leave));
            routines.far[usize::from(stack)] = emit(&mut |asm| far(asm, mask, stack, Then::Look, leave));
        }
        routines.link = emit(&mut |asm| link(asm, leave));
        routines.called = emit(&mut called);
        routines.returns = emit(&mut |asm| far(asm, mask, true, Then::Return, leave));
        routines.unpaired = emit(&mut |asm| unpaired(asm, leave));
        routines.handler = emit(&mut |asm| handler(asm, base, leave));
        routines.string = emit(&mut |asm| string(asm, base, leave));
        routines.second = emit(&mut |asm| second(asm, mask, base, leave));
        routines.edge = emit(&mut edge);
        let unusual = emit(&mut unusual_flags);
        routines.flags = emit(&mut |asm| flags(asm, unusual));
        routines.carry = emit(&mut |asm| carry(asm, unusual));
        routines.full = emit(&mut |asm| leave_with(asm, FULL, 8, leave));
        routines.unlinked = emit(&mut |asm| {
            asm.set(RAX, words);
            asm.alu(Alu::Sub, R11, RAX);
            // From bytes to cells, and to where their number belongs.
            leave_with(asm, UNLINKED, 8 - CELL_SHIFT, leave);
        });
        routines
    }
}

fn enter(asm: &mut Asm) {
    SAVED.iter().for_each(|&reg| asm.push(reg));
    asm.add_to(RSP, RSP, -8);
    asm.add_to(R15, RDI, MIDDLE);
    asm.load(R12, R15, slot(LEFT));
    asm.load(R14, R15, TABLE);
    asm.jump_register(RSI);
}

fn leave(asm: &mut Asm) {
    asm.store(R15, slot(LEFT), R12);
    asm.add_to(RSP, RSP, 8);
    SAVED.iter().rev().for_each(|&reg| asm.pop(reg));
    asm.ret();
}

/// Leave with R11, shifted, and a reason.
fn leave_with(asm: &mut Asm, why: u8, shift: u8, leave: u64) {
    asm.copy(RAX, R11);
    asm.shift_left(RAX, shift);
    asm.alu_imm(Alu::Add, RAX, i32::from(why));
    asm.jump_to(leave);
}

/// `entry` = the offset of the TLB's entry for the address in R13.
fn entry(asm: &mut Asm, entry: Host, mask: usize) {
    asm.copy32(entry, R13);
    asm.shift_right32(entry, 12 - tlb::ENTRY_SHIFT);
    asm.and32(entry, (mask << tlb::ENTRY_SHIFT) as u32);
}

fn check(asm: &mut Asm, mask: usize, size: u8, aligned: bool, write: bool, miss: u64) {
    let (other, unaligned) = (asm.label(), asm.label());
    if aligned {
        asm.test_byte(R13, 15);
        asm.jump_if(NOT_EQUAL, unaligned);
    }
    entry(asm, R11, mask);
    asm.add_to(R10, R13, i32::from(size) - 1);
    asm.alu_imm(Alu::And, R10, -4096);
    let tag = if write { tlb::WRITE } else { tlb::READ };
    asm.alu_indexed(Alu::Cmp, R10, R14, R11, tag as i8);
    asm.jump_if(NOT_EQUAL, other);
    asm.alu_indexed(Alu::Add, R13, R14, R11, tlb::ADDEND as i8);
    asm.ret();
    asm.bind(other);
    asm.set(R10, u64::from(size) << 1 | u64::from(write));
    asm.jump_to(miss);
    asm.bind(unaligned);
    asm.set(R10, IMPOSSIBLE);
    asm.jump_to(miss);
}

fn executable(asm: &mut Asm, mask: usize, miss: u64) {
    let unknown = asm.label();
    entry(asm, R11, mask);
    asm.alu_imm(Alu::And, R13, -4096);
    asm.alu_indexed(Alu::Cmp, R13, R14, R11, tlb::EXEC as i8);
    asm.jump_if(NOT_EQUAL, unknown);
    asm.ret();
    asm.bind(unknown);
    // No walk: the page would count as accessed, and what comes before the jump may yet fault.
    asm.set(R10, IMPOSSIBLE);
    asm.jump_to(miss);
}

fn vectors(asm: &mut Asm, miss: u64) {
    let not = asm.label();
    let (cr0, cr4) = (field(offset_of!(Core, cr0)), field(offset_of!(Core, cr4)));
    asm.test_memory(R15, cr0, (cr0::EM | cr0::TS) as u8);
    asm.jump_if(NOT_EQUAL, not);
    asm.test_memory(R15, cr4 + 1, (cr4::OSFXSR >> 8) as u8);
    asm.jump_if(EQUAL, not);
    asm.ret();
    asm.bind(not);
    asm.set(R10, IMPOSSIBLE);
    asm.jump_to(miss);
}

/// An access misses the TLB. R10 tells which one.
fn miss(asm: &mut Asm, base: u64, leave: u64) {
    HOLDERS.iter().rev().for_each(|&reg| asm.push(Host(reg)));
    asm.add_to(RSP, RSP, -VECTOR_BYTES);
    (0..16).for_each(|n| asm.store_vector(RSP, 16 * i32::from(n), n));
    asm.add_to(RDI, R15, -MIDDLE);
    asm.copy(RSI, RSP);
    asm.copy(RDX, R13);
    asm.copy(RCX, R10);
    asm.set(RAX, missed as *const () as u64);
    asm.call(RAX);
    asm.copy(R13, RAX);
    asm.test(3, RAX, RAX);
    (0..16).for_each(|n| asm.load_vector(n, RSP, 16 * i32::from(n)));
    asm.add_to(RSP, RSP, VECTOR_BYTES);
    HOLDERS.iter().for_each(|&reg| asm.pop(Host(reg)));
    let failed = asm.label();
    asm.jump_if(EQUAL, failed);
    asm.ret();
    asm.bind(failed);
    leave_from_site(asm, R11, base);
    leave_with(asm, MISSED, 8, leave);
}

/// `at` = the offset of the code that would be returned to.
fn leave_from_site(asm: &mut Asm, at: Host, base: u64) {
    asm.pop(at);
    asm.set(R10, base);
    asm.alu(Alu::Sub, at, R10);
}

/// What comes when a place is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// Nothing.
    Go,
    /// RAX = the entry of the table of jumps.
    Look,
    /// RCX = the last call.
    Return,
}

/// Where the last calls are, and the offset of the last one.
const RETURNS_AT: i32 = field(offset_of!(Core, native) + offset_of!(Native, returns));
const TOP: i32 = field(offset_of!(Core, native) + offset_of!(Native, top));
/// Offsets of calls wrap around.
const RETURNS_MASK: u32 = ((RETURNS - 1) * size_of::<Return>()) as u32;
const _: () = assert!(RETURNS.is_power_of_two() && size_of::<Return>().is_power_of_two());

fn called(asm: &mut Asm) {
    asm.load(RAX, R15, TOP);
    asm.add_to(RAX, RAX, size_of::<Return>() as i32);
    asm.and32(RAX, RETURNS_MASK);
    asm.store(R15, TOP, RAX);
    asm.sum(RDX, R15, RAX, 0, RETURNS_AT);
    asm.store(RDX, offset_of!(Return, va) as i32, R10);
    asm.store(RDX, offset_of!(Return, cell) as i32, RCX);
    asm.load(R11, RCX, 0);
    asm.load(R13, RCX, 8);
    asm.store(RDX, offset_of!(Return, code) as i32, R11);
    asm.store(RDX, offset_of!(Return, place) as i32, R13);
    asm.ret();
}

/// A return that goes somewhere else than behind the last call, or to where nobody has returned yet.
fn unpaired(asm: &mut Asm, leave: u64) {
    let (behind, other) = (asm.label(), asm.label());
    find_jump(asm, behind);
    asm.load(RAX, RAX, 8);
    asm.and32(R13, 0xfff);
    asm.alu(Alu::Add, R13, RDX);
    asm.alu_memory(Alu::Cmp, R13, RCX, offset_of!(Return, va) as i32);
    asm.jump_if(NOT_EQUAL, other);
    asm.load(RCX, RCX, offset_of!(Return, cell) as i32);
    asm.store(RCX, 8, RDI);
    asm.store(RCX, 0, RAX);
    asm.bind(other);
    asm.jump_register(RAX);
    asm.bind(behind);
    not_found(asm, leave);
}

/// Where the linear address in R13 lies: RDI = its place, R13 = its host address, RDX = its page.
fn far(asm: &mut Asm, mask: usize, stack: bool, then: Then, leave: u64) {
    let (again, unknown, behind) = (asm.label(), asm.label(), asm.label());
    asm.bind(again);
    entry(asm, RAX, mask);
    asm.copy(RDX, R13);
    asm.alu_imm(Alu::And, RDX, -4096);
    asm.alu_indexed(Alu::Cmp, RDX, R14, RAX, tlb::EXEC as i8);
    asm.jump_if(NOT_EQUAL, unknown);
    if stack {
        asm.store(R15, slot(4), RSI);
    }
    asm.store(R15, slot(PAGE), RDX);
    asm.add_to(RDI, RDX, 1 << 30);
    asm.store(R15, slot(PAGE_FAR), RDI);
    asm.alu_indexed(Alu::Add, R13, R14, RAX, tlb::ADDEND as i8);
    // As `decode::cache::place` has it.
    asm.copy(RDI, R13);
    asm.alu_memory(Alu::Sub, RDI, R15, slot(RAM));
    asm.copy(RAX, RDI);
    asm.shift_right(RAX, 12);
    asm.load(RCX, R15, slot(CONTENTS));
    asm.load_scaled(RAX, RCX, RAX);
    asm.shift_left(RAX, 12);
    asm.and32(RDI, 0xfff);
    asm.alu(Alu::Add, RDI, RAX);
    match then {
        Then::Go => {}
        Then::Look => find_jump(asm, behind),
        Then::Return => {
            asm.load(RAX, R15, TOP);
            asm.sum(RCX, R15, RAX, 0, RETURNS_AT);
            asm.add_to(RAX, RAX, -(size_of::<Return>() as i32));
            asm.and32(RAX, RETURNS_MASK);
            asm.store(R15, TOP, RAX);
        }
    }
    asm.ret();
    if then == Then::Look {
        asm.bind(behind);
        asm.add_to(RSP, RSP, 8);
        not_found(asm, leave);
    }

    asm.bind(unknown);
    // Where the run stops nobody fetches any more.
    let failed = asm.label();
    asm.test(3, R12, R12);
    asm.jump_if(EQUAL, failed);
    walk_for_code(asm, [RSI, R11], again);
    asm.bind(failed);
    asm.add_to(RSP, RSP, 8);
    // All that the instruction does is done, unless it faults itself.
    asm.store(R15, RIP, R13);
    let fault = asm.label();
    asm.copy(RAX, R13);
    asm.shift_left(RAX, 16);
    asm.shift_right_signed(RAX, 16);
    asm.alu(Alu::Cmp, RAX, R13);
    asm.jump_if(NOT_EQUAL, fault);
    if stack {
        asm.store(R15, slot(4), RSI);
    }
    asm.set(RAX, u64::from(NEXT));
    asm.jump_to(leave);
    asm.bind(fault);
    leave_with(asm, MISSED_FAR, 8, leave);
}

/// In a routine: walk the page tables for code at the linear address in R13, and look again if it may be executed. Two registers
/// are kept.
fn walk_for_code(asm: &mut Asm, keep: [Host; 2], again: Label) {
    keep.iter().for_each(|&reg| asm.push(reg));
    asm.add_to(RSP, RSP, -8);
    asm.add_to(RDI, R15, -MIDDLE);
    asm.copy(RSI, R13);
    asm.set(RAX, missed_exec as *const () as u64);
    asm.call(RAX);
    asm.add_to(RSP, RSP, 8);
    keep.iter().rev().for_each(|&reg| asm.pop(reg));
    asm.test(2, RAX, RAX);
    asm.jump_if(NOT_EQUAL, again);
}

/// RAX = the entry of the table of jumps for the place in RDI; elsewhere if it is not there.
fn find_jump(asm: &mut Asm, elsewhere: Label) {
    // As `super::jump_slot` does it.
    asm.copy(RAX, RDI);
    asm.shift_right32(RAX, 12);
    asm.xor32(RAX, RDI);
    asm.and32(RAX, super::JUMP_MASK as u32);
    asm.shift_left(RAX, JUMP_SHIFT);
    asm.alu_memory(Alu::Add, RAX, R15, slot(JUMPS));
    asm.alu_memory(Alu::Cmp, RDI, RAX, 0);
    asm.jump_if(NOT_EQUAL, elsewhere);
}

/// Nothing is known of the code at R13, on the page RDX.
fn not_found(asm: &mut Asm, leave: u64) {
    asm.and32(R13, 0xfff);
    asm.alu(Alu::Add, R13, RDX);
    asm.store(R15, RIP, R13);
    asm.set(RAX, u64::from(NEXT));
    asm.jump_to(leave);
}

fn link(asm: &mut Asm, leave: u64) {
    let behind = asm.label();
    find_jump(asm, behind);
    asm.load(RAX, RAX, 8);
    asm.store(RCX, 8, RDI);
    asm.store(RCX, 0, RAX);
    asm.jump_register(RAX);
    asm.bind(behind);
    not_found(asm, leave);
}

/// Call a function of [`super::enter`] with the word in RSI.
fn call(asm: &mut Asm, function: u64) {
    asm.store(R15, slot(LEFT), R12);
    asm.add_to(RDI, R15, -MIDDLE);
    asm.add_to(RSP, RSP, -8);
    asm.set(RAX, function);
    asm.call(RAX);
    asm.add_to(RSP, RSP, 8);
}

/// An operation has ended its block, for the reason in RAX.
fn stopped(asm: &mut Asm, base: u64, leave: u64) {
    asm.copy(R13, RAX);
    asm.shift_left(R13, STOP_SHIFT - 8);
    leave_from_site(asm, R11, base);
    asm.alu(Alu::Add, R11, R13);
    leave_with(asm, STOPPED, 8, leave);
}

fn handler(asm: &mut Asm, base: u64, leave: u64) {
    call(asm, call_op as *const () as u64);
    // It may have changed the mode.
    asm.load(R14, R15, TABLE);
    asm.test(2, RAX, RAX);
    let ended = asm.label();
    asm.jump_if(NOT_EQUAL, ended);
    asm.ret();
    asm.bind(ended);
    stopped(asm, base, leave);
}

fn string(asm: &mut Asm, base: u64, leave: u64) {
    call(asm, call_string as *const () as u64);
    // Its iterations were counted.
    asm.load(R12, R15, slot(LEFT));
    asm.test(2, RAX, RAX);
    let (ended, again) = (asm.label(), asm.label());
    asm.jump_if(NOT_EQUAL, ended);
    asm.ret();
    asm.bind(ended);
    asm.alu_imm(Alu::Cmp, RAX, 1);
    asm.jump_if(EQUAL, again);
    stopped(asm, base, leave);
    asm.bind(again);
    asm.add_to(RSP, RSP, 8);
    asm.set(RAX, u64::from(NEXT));
    asm.jump_to(leave);
}

fn second(asm: &mut Asm, mask: usize, base: u64, leave: u64) {
    let (again, unknown, other) = (asm.label(), asm.label(), asm.label());
    asm.bind(again);
    entry(asm, RAX, mask);
    asm.alu_indexed(Alu::Cmp, R13, R14, RAX, tlb::EXEC as i8);
    asm.jump_if(NOT_EQUAL, unknown);
    asm.alu_indexed(Alu::Add, R13, R14, RAX, tlb::ADDEND as i8);
    asm.alu_memory(Alu::Sub, R13, R15, slot(RAM));
    asm.copy(RAX, R13);
    asm.shift_right(RAX, 12);
    asm.load(RCX, R15, slot(CONTENTS));
    asm.load_scaled(RAX, RCX, RAX);
    asm.alu(Alu::Cmp, RAX, R11);
    asm.jump_if(NOT_EQUAL, other);
    asm.ret();
    asm.bind(unknown);
    // The walk is what fetching the instruction begins with.
    walk_for_code(asm, [R11, R13], again);
    asm.bind(other);
    leave_from_site(asm, R11, base);
    leave_with(asm, SECOND, 8, leave);
}

fn edge(asm: &mut Asm) {
    let unknown = asm.label();
    // As `crate::edges` does it.
    asm.rotate_left(R10, NUMBER_ROTATION);
    asm.alu(Alu::Xor, R10, R11);
    asm.copy(RAX, R10);
    asm.shift_right(RAX, 12);
    asm.xor32(RAX, R10);
    asm.and32(RAX, TABLE_MASK as u32);
    asm.shift_left(RAX, TABLE_SHIFT);
    asm.alu_memory(Alu::Add, RAX, R15, slot(EDGES));
    asm.alu_memory(Alu::Cmp, R10, RAX, 0);
    asm.jump_if(NOT_EQUAL, unknown);
    asm.store_imm(R15, slot(FROM), 0);
    asm.ret();
    asm.bind(unknown);
    asm.add_to(RDI, R15, -MIDDLE);
    asm.copy(RSI, R11);
    asm.add_to(RSP, RSP, -8);
    asm.set(RAX, note_edge as *const () as u64);
    asm.call(RAX);
    asm.add_to(RSP, RSP, 8);
    asm.ret();
}

/// What flags are usually left of, most usual first.
const USUAL: [(Operation, u8); 11] = [
    (Operation::Sub, 3),
    (Operation::Logic, 3),
    (Operation::Sub, 2),
    (Operation::Logic, 2),
    (Operation::Host, 3),
    (Operation::Sub, 0),
    (Operation::Logic, 0),
    (Operation::Add, 3),
    (Operation::Add, 2),
    (Operation::Sub, 1),
    (Operation::Logic, 1),
];

fn flags(asm: &mut Asm, unusual: u64) {
    asm.load_by_width(0, R10, R15, slot(KIND));
    let labels = USUAL.map(|(operation, log2)| {
        let label = asm.label();
        asm.alu_imm(Alu::Cmp, R10, i32::from(lazy::kind(operation, log2)));
        asm.jump_if(EQUAL, label);
        label
    });
    asm.jump_to(unusual);
    for ((operation, log2), label) in USUAL.into_iter().zip(labels) {
        asm.bind(label);
        let computed = late::compute(asm, operation, log2);
        debug_assert!(computed);
        asm.ret();
    }
}

/// The flags of INC and DEC go round in loops with the CF that was there before.
fn carry(asm: &mut Asm, unusual: u64) {
    let other = asm.label();
    asm.load_by_width(0, R10, R15, slot(KIND));
    asm.alu_imm(Alu::Cmp, R10, i32::from(lazy::kind(Operation::Host, 3)));
    asm.jump_if(NOT_EQUAL, other);
    late::carry_of_host(asm);
    asm.ret();
    asm.bind(other);
    asm.jump_to(unusual);
}

fn unusual_flags(asm: &mut Asm) {
    VOLATILE.iter().for_each(|&reg| asm.push(Host(reg)));
    asm.add_to(RDI, R15, -MIDDLE);
    asm.set(RAX, read_flags as *const () as u64);
    asm.call(RAX);
    asm.push(RAX);
    asm.pop_flags();
    VOLATILE.iter().rev().for_each(|&reg| asm.pop(Host(reg)));
    asm.ret();
}

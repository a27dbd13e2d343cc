//! Code that all translations share: entry and exit, accesses to guest memory, jumps to other pages, and calls of
//! handlers (functions of the CPU that execute one operation). Sharing keeps translations small: a guest with varied
//! code is faster if more of its translations fit into the host's caches.
//!
//! Register use: R15 points into the middle of the CPU's fields ([`super::frame`]). R10, R11 and R13 are scratch. At
//! the end of a block R9, R12 and R14 are scratch, too. The other registers hold guest registers
//! ([`super::registers`]).

use std::mem::offset_of;

use super::asm::{
    Alu, Asm, EQUAL, Host, Label, NOT_EQUAL, R9, R10, R11, R12, R13, R14, R15, RAX, RCX, RDI, RDX, RSI, RSP,
};
use super::enter::{call_op, call_string, missed, missed_exec, note_edge, read_flags};
use super::frame::{EPOCH, HOST_MXCSR, MIDDLE, MXCSR, MXCSR_IS_GUESTS, RFLAGS, RIP, TABLE, field, slot};
use super::lazy_flags::{self, GUEST_FLAGS, Operation};
use super::memory::CodeMemory;
use super::registers::{FIXED, POOL, STACK};
use super::{
    FULL, JUMP_MASK, JUMP_SHIFT, Jump, MISSED, MISSED_FAR, NEXT, SECOND, STOP_SHIFT, STOPPED, UNLINKED,
};
use crate::core::native::{HOP_MASK, HOP_SHIFT, Hop, Native, PAGE_MASK, PAGE_SHIFT, Page, RETURNS, Return};
use crate::core::{Core, cr0, cr4};
use crate::edges::{NUMBER_ROTATION, TABLE_MASK, TABLE_SHIFT};
use crate::flags::bits;
use crate::host_fp::sse::MASKS;
use crate::mem::tlb;
use crate::op::slot::{CONTENTS, EDGES, FROM, HOPS, JUMPS, KIND, LEFT, PAGE, PAGES, RAM, X};

/// Host registers that the ABI requires a function to preserve.
const SAVED: [Host; 6] = [Host(3), Host(5), R12, R13, R14, R15];

/// Width of an access. The discriminant is the binary logarithm of the number of bytes, or 5 for `Aligned`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Byte,
    Word,
    Dword,
    Qword,
    Vector,
    /// Sixteen bytes at an address that must be a multiple of 16.
    Aligned,
}

impl Width {
    const ALL: [Width; 6] =
        [Width::Byte, Width::Word, Width::Dword, Width::Qword, Width::Vector, Width::Aligned];

    /// Returns the width for a number of bytes, a power of two up to 16.
    pub(super) fn of(bytes: usize) -> Width {
        Width::ALL[bytes.trailing_zeros().min(4) as usize]
    }
    fn bytes(self) -> u8 {
        if self == Width::Aligned { 16 } else { 1 << self as u8 }
    }
}

/// Maximum number of pushes or pops that share one TLB lookup.
pub(super) const STACK_WORDS_MAX: usize = 8;

/// Size of the sixteen XMM registers in bytes.
const VECTOR_BYTES: i32 = 16 * 16;
/// Argument of [`missed`] that means: a page walk cannot help, so the interpreter must execute the instruction.
const IMPOSSIBLE: u64 = 0;

/// Addresses of all shared routines. Each field's comment says what its routine does.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Routines {
    /// Entry to translated code: `extern fn(core, code) -> word`. The low byte of the word is the reason why translated
    /// code returned, e.g. `FULL`.
    pub enter: u64,
    /// Leaves translated code. R11 is the word to return.
    pub leave: u64,
    /// For each [`Width`], the routine that replaces the linear address in R13 by the host address, for a read.
    pub read: [u64; Width::ALL.len()],
    /// For each [`Width`], the routine that replaces the linear address in R13 by the host address, for a write.
    pub write: [u64; Width::ALL.len()],
    /// Like `read` (index 0) and `write` (index 1), but for a run of pops or pushes. The second index is the number of
    /// words.
    pub stack: [[u64; STACK_WORDS_MAX + 1]; 2],
    /// Checks that the TLB permits execution at the linear address in R13. If it does not, leaves the instruction to
    /// the interpreter. Clobbers R13.
    pub executable: u64,
    /// Leaves the instruction to the interpreter.
    pub interpret: u64,
    /// Executes CLI. If the guest is not in ring 0, leaves the instruction to the interpreter.
    pub cli: u64,
    /// Executes STI, which must not be the last instruction of its block. If the guest is not in ring 0, or the run must
    /// stop as soon as an interrupt can be taken, leaves the instruction to the interpreter.
    pub sti: u64,
    /// R10 = the guest's arithmetic flags as bits of RFLAGS, exactly as in the interpreter. Preserves R13.
    pub flag_bits: u64,
    /// Checks that the guest may use XMM registers. If it may not, leaves the instruction to the interpreter.
    pub vectors: u64,
    /// Loads the guest's MXCSR into the host's register. If the guest may not use XMM registers, or has unmasked an
    /// exception, leaves the instruction to the interpreter.
    pub floating: u64,
    /// Prepares a jump to the linear address in R13: R12 = address of its translation. R11 is the number of the jump's
    /// site (see `sites`). The routine with index 1 also sets the stack pointer from R14.
    pub hop: [u64; 2],
    /// Like `hop`, for a target page that should have the content number in R12. A content number stands for the bytes
    /// of a page. If the routine cannot confirm the number, it jumps to the target itself and does not return.
    pub direct: [u64; 2],
    /// Records a call in the ring of recent calls. R10 is the return address. R12 is the address of the translation of
    /// the code at the return address, or 0. Preserves R9 and R14.
    pub called: u64,
    /// Like `hop` with index 1, for a return.
    pub returns: u64,
    /// Calls the handler of an operation. R11 is the result of `handler_word` for the operation.
    pub handler: u64,
    /// Like `handler`, for a repeated string instruction.
    pub string: u64,
    /// Serves blocks that continue on a second page. Checks that the page at the linear address in R13 is executable
    /// and has the content number in R11. If not, leaves with the reason `SECOND`.
    pub second: u64,
    /// Records the edge from the branch at the location in R10 to the next executed instruction, which is at the
    /// location in R11, unless the table of edges already has this edge. Clobbers R10.
    pub edge: u64,
    /// Makes the host's flags equal the guest's, for all flags that conditions read.
    pub flags: u64,
    /// Makes the host's CF equal the guest's.
    pub carry: u64,
    /// Leaves with the reason `FULL`: the block has more instructions than the CPU may still execute before it stops.
    /// The start of the block has already subtracted all of the block's instructions from the number of instructions
    /// left.
    pub full: u64,
    /// Leaves with the reason `UNLINKED`: the jump to the next block is not linked to a translation yet.
    pub unlinked: u64,
}

impl Routines {
    /// Emits all routines. `mask` is the number of TLB entries per mode, minus one.
    pub(super) fn new(memory: &mut CodeMemory, mask: usize) -> Routines {
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
        let interpret = emit(&mut |asm| {
            asm.set(R10, IMPOSSIBLE);
            asm.jump_to(miss);
        });
        routines.interpret = interpret;
        routines.cli = emit(&mut |asm| cli(asm, interpret));
        routines.sti = emit(&mut |asm| sti(asm, interpret));
        routines.flag_bits = emit(&mut flag_bits);
        routines.vectors = emit(&mut |asm| vectors(asm, interpret));
        routines.floating = emit(&mut |asm| floating(asm, interpret));
        for stack in [false, true] {
            let elsewhere = emit(&mut |asm| far(asm, mask, stack, leave));
            let hop = emit(&mut |asm| hop(asm, stack, elsewhere));
            routines.hop[usize::from(stack)] = hop;
            routines.direct[usize::from(stack)] = emit(&mut |asm| direct(asm, stack, hop, elsewhere));
        }
        routines.called = emit(&mut called);
        let elsewhere = routines.hop[1];
        routines.returns = emit(&mut |asm| returns(asm, elsewhere));
        routines.handler = emit(&mut |asm| handler(asm, base, leave));
        routines.string = emit(&mut |asm| string(asm, base, leave));
        routines.second = emit(&mut |asm| second(asm, mask, base, leave));
        routines.edge = emit(&mut edge);
        let unusual = emit(&mut unusual_flags);
        routines.flags = emit(&mut |asm| flags(asm, unusual));
        routines.carry = emit(&mut |asm| carry(asm, unusual));
        for (why, routine) in [(FULL, &mut routines.full), (UNLINKED, &mut routines.unlinked)] {
            *routine = emit(&mut |asm| {
                leave_from_site(asm, R11, base);
                leave_with(asm, why, 8, leave);
            });
        }
        routines
    }
}

/// Emits loads of all fixed guest registers. Changes no flags.
fn fill(asm: &mut Asm) {
    FIXED.iter().zip(0..).for_each(|(&host, guest)| asm.load(host, R15, slot(guest)));
}

/// Emits stores of all fixed guest registers. Other code can then see them, and calls may clobber some of them. Changes
/// no flags.
fn spill(asm: &mut Asm) {
    FIXED.iter().zip(0..).for_each(|(&host, guest)| asm.store(R15, slot(guest), host));
}

fn enter(asm: &mut Asm) {
    SAVED.iter().for_each(|&reg| asm.push(reg));
    asm.add_to(RSP, RSP, -8);
    asm.add_to(R15, RDI, MIDDLE);
    asm.copy(R11, RSI);
    fill(asm);
    asm.jump_register(R11);
}

/// Emits code that gives the host its MXCSR back, and stores the guest's, if the guest's is in the host's register. It
/// must run before each function of the host and each exit from translated code. Changes only flags.
fn give_mxcsr_back(asm: &mut Asm) {
    let done = asm.label();
    asm.test_memory(R15, MXCSR_IS_GUESTS, 1);
    asm.jump_short_if(EQUAL, done);
    asm.store_mxcsr(R15, MXCSR);
    asm.load_mxcsr(R15, HOST_MXCSR);
    asm.store8_imm(R15, MXCSR_IS_GUESTS, 0);
    asm.bind(done);
}

fn leave(asm: &mut Asm) {
    spill(asm);
    give_mxcsr_back(asm);
    asm.copy(RAX, R11);
    asm.add_to(RSP, RSP, 8);
    SAVED.iter().rev().for_each(|&reg| asm.pop(reg));
    asm.ret();
}

/// Emits an exit. The word to return is R11 shifted left by `shift`, plus the reason `why`.
fn leave_with(asm: &mut Asm, why: u8, shift: u8, leave: u64) {
    asm.shift_left(R11, shift);
    asm.alu_imm(Alu::Add, R11, i32::from(why));
    asm.jump_to(leave);
}

/// `entry` = address of the TLB entry for the linear address in R13.
fn entry(asm: &mut Asm, entry: Host, mask: usize) {
    asm.copy32(entry, R13);
    asm.shift_right32(entry, 12 - tlb::ENTRY_SHIFT);
    asm.and32(entry, (mask << tlb::ENTRY_SHIFT) as u32);
    asm.alu_memory(Alu::Add, entry, R15, TABLE);
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
    asm.alu_memory(Alu::Cmp, R10, R11, tag as i32);
    asm.jump_if(NOT_EQUAL, other);
    asm.alu_memory(Alu::Add, R13, R11, tlb::ADDEND as i32);
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
    asm.alu_memory(Alu::Cmp, R13, R11, tlb::EXEC as i32);
    asm.jump_if(NOT_EQUAL, unknown);
    asm.ret();
    asm.bind(unknown);
    // A page walk here would mark the target page as accessed, although the push of the return address may still fault.
    asm.set(R10, IMPOSSIBLE);
    asm.jump_to(miss);
}

/// Byte 1 of RFLAGS holds IF.
const IF_BYTE: i32 = RFLAGS + 1;
const IF: u8 = (bits::IF >> 8) as u8;

fn cli(asm: &mut Asm, interpret: u64) {
    let other = asm.label();
    jump_unless_ring_0(asm, other);
    asm.alu8_memory_imm(Alu::And, R15, IF_BYTE, !IF);
    asm.ret();
    asm.bind(other);
    asm.jump_to(interpret);
}

fn sti(asm: &mut Asm, interpret: u64) {
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

fn vectors(asm: &mut Asm, interpret: u64) {
    let not = asm.label();
    jump_unless_vectors(asm, not);
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

fn floating(asm: &mut Asm, interpret: u64) {
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

/// Emits the handling of an access that misses the TLB. R10 is the last argument of [`missed`].
fn miss(asm: &mut Asm, base: u64, leave: u64) {
    spill(asm);
    POOL.iter().rev().for_each(|&reg| asm.push(reg));
    asm.add_to(RSP, RSP, -VECTOR_BYTES);
    (0..16).for_each(|n| asm.store_vector(RSP, 16 * i32::from(n), n));
    asm.add_to(RDI, R15, -MIDDLE);
    asm.copy(RSI, RSP);
    asm.copy(RDX, R13);
    asm.copy(RCX, R10);
    let (hosts, usual) = (asm.label(), asm.label());
    asm.test_memory(R15, MXCSR_IS_GUESTS, 1);
    asm.jump_short_if(EQUAL, hosts);
    asm.store_mxcsr(R15, MXCSR);
    asm.load_mxcsr(R15, HOST_MXCSR);
    asm.bind(hosts);
    asm.set(RAX, missed as *const () as u64);
    asm.call(RAX);
    // The block goes on to rely on the guest's MXCSR.
    asm.test_memory(R15, MXCSR_IS_GUESTS, 1);
    asm.jump_short_if(EQUAL, usual);
    asm.load_mxcsr(R15, MXCSR);
    asm.bind(usual);
    asm.copy(R13, RAX);
    asm.test(3, RAX, RAX);
    (0..16).for_each(|n| asm.load_vector(n, RSP, 16 * i32::from(n)));
    asm.add_to(RSP, RSP, VECTOR_BYTES);
    POOL.iter().for_each(|&reg| asm.pop(reg));
    fill(asm);
    let failed = asm.label();
    asm.jump_if(EQUAL, failed);
    asm.ret();
    asm.bind(failed);
    leave_from_site(asm, R11, base);
    leave_with(asm, MISSED, 8, leave);
}

/// Emits code that pops the return address: `at` = its offset from the start of translated code.
fn leave_from_site(asm: &mut Asm, at: Host, base: u64) {
    asm.pop(at);
    asm.set(R10, base);
    asm.alu(Alu::Sub, at, R10);
}

/// Displacements from R15 of the ring of calls, and of the offset of its most recent entry.
const RETURNS_AT: i32 = field(offset_of!(Core, native) + offset_of!(Native, returns));
const TOP: i32 = field(offset_of!(Core, native) + offset_of!(Native, top));
/// Mask that wraps offsets in the ring around.
const RETURNS_MASK: u32 = ((RETURNS - 1) * size_of::<Return>()) as u32;
const _: () = assert!(RETURNS.is_power_of_two() && size_of::<Return>().is_power_of_two());

fn called(asm: &mut Asm) {
    asm.load(R11, R15, TOP);
    asm.add_to(R11, R11, size_of::<Return>() as i32);
    asm.and32(R11, RETURNS_MASK);
    asm.store(R15, TOP, R11);
    asm.sum(R13, R15, R11, 0, RETURNS_AT);
    asm.load(R11, R15, EPOCH);
    asm.store(R13, offset_of!(Return, va) as i32, R10);
    asm.store(R13, offset_of!(Return, epoch) as i32, R11);
    asm.store(R13, offset_of!(Return, code) as i32, R12);
    asm.ret();
}

fn returns(asm: &mut Asm, elsewhere: u64) {
    let other = asm.label();
    asm.load(R12, R15, TOP);
    asm.sum(R9, R15, R12, 0, RETURNS_AT);
    asm.add_to(R12, R12, -(size_of::<Return>() as i32));
    asm.and32(R12, RETURNS_MASK);
    asm.store(R15, TOP, R12);
    asm.load(R12, R9, offset_of!(Return, code) as i32);
    asm.alu_memory(Alu::Cmp, R13, R9, offset_of!(Return, va) as i32);
    asm.jump_if(NOT_EQUAL, other);
    asm.load(R10, R15, EPOCH);
    asm.alu_memory(Alu::Cmp, R10, R9, offset_of!(Return, epoch) as i32);
    asm.jump_if(NOT_EQUAL, other);
    asm.test(3, R12, R12);
    asm.jump_if(EQUAL, other);
    asm.copy(STACK, R14);
    asm.alu_imm(Alu::And, R13, -4096);
    asm.store(R15, slot(PAGE), R13);
    asm.ret();
    asm.bind(other);
    asm.jump_to(elsewhere);
}

/// `entry` = address of the entry for the linear address in R13 in the table of recent jumps.
fn hop_entry(asm: &mut Asm, entry: Host) {
    entry_for(asm, entry, R13, HOP_MASK, HOP_SHIFT, HOPS);
}

/// `entry` = address of the entry for a key, in the table whose address is in slot `table`. `super::jump_slot` and
/// [`crate::edges`] compute the same index.
fn entry_for(asm: &mut Asm, entry: Host, key: Host, mask: usize, shift: u8, table: u8) {
    asm.copy(entry, key);
    asm.shift_right(entry, 12);
    asm.xor32(entry, key);
    asm.and32(entry, mask as u32);
    asm.shift_left(entry, shift);
    asm.alu_memory(Alu::Add, entry, R15, slot(table));
}

fn hop(asm: &mut Asm, stack: bool, elsewhere: u64) {
    let other = asm.label();
    hop_entry(asm, R12);
    asm.alu_memory(Alu::Cmp, R13, R12, offset_of!(Hop, va) as i32);
    asm.jump_if(NOT_EQUAL, other);
    asm.load(R10, R15, EPOCH);
    asm.alu_memory(Alu::Cmp, R10, R12, offset_of!(Hop, epoch) as i32);
    asm.jump_if(NOT_EQUAL, other);
    if stack {
        asm.copy(STACK, R14);
    }
    asm.alu_imm(Alu::And, R13, -4096);
    asm.store(R15, slot(PAGE), R13);
    asm.load(R12, R12, offset_of!(Hop, code) as i32);
    asm.ret();
    asm.bind(other);
    asm.jump_to(elsewhere);
}

/// `entry` = address of the entry for the linear address in R13 in the table of recent pages.
fn page_entry(asm: &mut Asm, entry: Host) {
    asm.copy32(entry, R13);
    asm.shift_right32(entry, 12 - PAGE_SHIFT);
    asm.and32(entry, (PAGE_MASK << PAGE_SHIFT) as u32);
    asm.alu_memory(Alu::Add, entry, R15, slot(PAGES));
}

fn direct(asm: &mut Asm, stack: bool, hop: u64, far: u64) {
    let (unknown, other) = (asm.label(), asm.label());
    page_entry(asm, R9);
    asm.copy(R10, R13);
    asm.alu_imm(Alu::And, R10, -4096);
    asm.alu_memory(Alu::Cmp, R10, R9, offset_of!(Page, va) as i32);
    asm.jump_if(NOT_EQUAL, unknown);
    asm.alu_memory(Alu::Cmp, R12, R9, offset_of!(Page, number) as i32);
    asm.jump_if(NOT_EQUAL, other);
    asm.load(R12, R15, EPOCH);
    asm.alu_memory(Alu::Cmp, R12, R9, offset_of!(Page, epoch) as i32);
    asm.jump_if(NOT_EQUAL, unknown);
    if stack {
        asm.copy(STACK, R14);
    }
    asm.store(R15, slot(PAGE), R10);
    asm.ret();
    for (label, routine) in [(unknown, far), (other, hop)] {
        asm.bind(label);
        asm.add_to(RSP, RSP, 8);
        asm.call_to(routine);
        asm.jump_register(R12);
    }
}

/// Emits the slow path of `hop`: it looks the target up in the TLB and the jump table, and updates the tables of recent
/// pages and jumps.
fn far(asm: &mut Asm, mask: usize, stack: bool, leave: u64) {
    let (again, unknown, behind) = (asm.label(), asm.label(), asm.label());
    asm.bind(again);
    entry(asm, R12, mask);
    asm.copy(R10, R13);
    asm.alu_imm(Alu::And, R10, -4096);
    asm.alu_memory(Alu::Cmp, R10, R12, tlb::EXEC as i32);
    asm.jump_if(NOT_EQUAL, unknown);
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
    entry_for(asm, R14, R9, JUMP_MASK, JUMP_SHIFT, JUMPS);
    asm.alu_memory(Alu::Cmp, R9, R14, offset_of!(Jump, place) as i32);
    asm.jump_if(NOT_EQUAL, behind);
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

/// Emits, within a routine, a page walk for code at the linear address in R13, and a jump to `again` if the page is
/// executable. Preserves R11 and the registers that every call preserves.
fn walk_for_code(asm: &mut Asm, again: Label) {
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

/// Emits a call of a function of [`super::enter`] with the core and the word in R11. R13 = result of the function.
fn call(asm: &mut Asm, function: u64) {
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

/// Emits the exit for a handler that ended its block. R13 is the number of the `Stop`.
fn stopped(asm: &mut Asm, base: u64, leave: u64) {
    asm.shift_left(R13, STOP_SHIFT - 8);
    leave_from_site(asm, R11, base);
    asm.alu(Alu::Add, R11, R13);
    leave_with(asm, STOPPED, 8, leave);
}

fn handler(asm: &mut Asm, base: u64, leave: u64) {
    call(asm, call_op as *const () as u64);
    asm.test(2, R13, R13);
    let ended = asm.label();
    asm.jump_if(NOT_EQUAL, ended);
    asm.ret();
    asm.bind(ended);
    stopped(asm, base, leave);
}

fn string(asm: &mut Asm, base: u64, leave: u64) {
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

fn second(asm: &mut Asm, mask: usize, base: u64, leave: u64) {
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

fn edge(asm: &mut Asm) {
    let unknown = asm.label();
    // R10 = number of the edge, as computed by `crate::edges::number`.
    asm.rotate_left(R10, NUMBER_ROTATION);
    asm.alu(Alu::Xor, R10, R11);
    entry_for(asm, R9, R10, TABLE_MASK, TABLE_SHIFT, EDGES);
    asm.alu_memory(Alu::Cmp, R10, R9, 0);
    asm.jump_if(NOT_EQUAL, unknown);
    asm.store_imm(R15, slot(FROM), 0);
    asm.ret();
    asm.bind(unknown);
    call(asm, note_edge as *const () as u64);
    asm.ret();
}

/// The most frequent kinds of lazy flags, in the order in which the code compares them.
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
        asm.alu_imm(Alu::Cmp, R10, i32::from(lazy_flags::kind(operation, log2)));
        asm.jump_if(EQUAL, label);
        label
    });
    asm.jump_to(unusual);
    for ((operation, log2), label) in USUAL.into_iter().zip(labels) {
        asm.bind(label);
        let computed = lazy_flags::compute(asm, operation, log2);
        debug_assert!(computed);
        asm.ret();
    }
}

/// Emits the routine `flag_bits`. The manual defines all flags of the operations that it computes itself, except AF of a
/// bitwise operation, which the interpreter clears.
fn flag_bits(asm: &mut Asm) {
    let kept = [
        (Operation::Host, 3),
        (Operation::Sub, 3),
        (Operation::Sub, 2),
        (Operation::Logic, 3),
        (Operation::Logic, 2),
    ];
    asm.load_by_width(0, R10, R15, slot(KIND));
    let labels = kept.map(|(operation, log2)| {
        let label = asm.label();
        asm.alu_imm(Alu::Cmp, R10, i32::from(lazy_flags::kind(operation, log2)));
        asm.jump_if(EQUAL, label);
        label
    });
    spill(asm);
    give_mxcsr_back(asm);
    // R9, R12 and R14 may hold guest registers here, as in `unusual_flags`.
    asm.push(R9);
    asm.add_to(RDI, R15, -MIDDLE);
    asm.set(RAX, read_flags as *const () as u64);
    asm.call(RAX);
    asm.copy(R10, RAX);
    asm.and32(R10, GUEST_FLAGS);
    asm.pop(R9);
    fill(asm);
    asm.ret();
    for ((operation, log2), label) in kept.into_iter().zip(labels) {
        asm.bind(label);
        if operation == Operation::Host {
            asm.load(R10, R15, slot(X));
        } else {
            let computed = lazy_flags::compute(asm, operation, log2);
            debug_assert!(computed);
            asm.push_flags();
            asm.pop(R10);
        }
        let cleared = if operation == Operation::Logic { bits::AF as u32 } else { 0 };
        asm.and32(R10, GUEST_FLAGS & !cleared);
        asm.ret();
    }
}

/// Emits the routine `carry`. Its fast path serves loops in which INC or DEC keeps the old CF.
fn carry(asm: &mut Asm, unusual: u64) {
    let other = asm.label();
    asm.load_by_width(0, R10, R15, slot(KIND));
    asm.alu_imm(Alu::Cmp, R10, i32::from(lazy_flags::kind(Operation::Host, 3)));
    asm.jump_if(NOT_EQUAL, other);
    lazy_flags::carry_of_host(asm);
    asm.ret();
    asm.bind(other);
    asm.jump_to(unusual);
}

fn unusual_flags(asm: &mut Asm) {
    spill(asm);
    give_mxcsr_back(asm);
    // R9, R12 and R14 may hold guest registers here (`POOL`). The ABI makes a call preserve R12 and R14, but not R9.
    asm.push(R9);
    asm.add_to(RDI, R15, -MIDDLE);
    asm.set(RAX, read_flags as *const () as u64);
    asm.call(RAX);
    asm.push(RAX);
    asm.pop_flags();
    asm.pop(R9);
    fill(asm);
    asm.ret();
}

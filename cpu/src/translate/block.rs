//! A block's translation: guest instructions to host code, one after the other.
//!
//! An instruction is either translated, or left to its handler within the block, or, where a block ends in a way that is
//! not known here, left to the interpreter with all that follows. The same holds for whatever is out of the ordinary: an
//! access that misses the software TLB leaves the block with everything as it was before the instruction, and the
//! interpreter executes it and the rest. So exceptions, devices, stores to code and page tables are the interpreter's.

use std::mem::offset_of;

use iced_x86::{Code, ConditionCode, Decoder, Encoder, Instruction, Mnemonic, OpKind, Register, RflagsBits};

use super::asm::{Alu, Asm, BELOW, Host, Label, NOT_EQUAL, R11, R12, R13, R14, R15, RAX, RDI, RDX, RSI};
use super::lazy::{self, Operation};
use super::registers::{Registers, slot as at_slot};
use super::{Leave, leave_word};
use crate::core::Core;
use crate::decode::block::OPTIONS;
use crate::decode::lower::lower;
use crate::decode::operand::{gpr, is_gpr, is_immediate, is_memory, width};
use crate::mem::tlb;
use crate::op::{ADDRESS_32, Kind, Op, slot};

const GUEST_RSP: u8 = 4;
/// All six arithmetic flags.
const ARITH: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;

/// What is to be translated.
pub(super) struct Source<'s> {
    /// The block's bytes.
    pub bytes: &'s [u8],
    /// Its operations.
    pub ops: &'s [Op],
    /// Where its operations begin in the cache's arena.
    pub ops_start: u32,
    /// The number of its translation.
    pub id: u32,
    /// The guest-physical page that it lies on.
    pub page: u64,
    /// Entries of the TLB, minus one.
    pub tlb_mask: usize,
}

/// Where things are that translated code refers to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    /// What every block leaves by.
    pub leave: u64,
    /// `extern fn(core, op, count) -> word`: have a handler execute an operation.
    pub call_op: u64,
    /// `extern fn(core) -> rflags`: the arithmetic flags.
    pub read_flags: u64,
    /// The generation at which this block was valid.
    pub generation: u64,
    /// Two cells with addresses of the blocks that follow.
    pub cells: [u64; 2],
    /// The number of the first of them.
    pub first_cell: u32,
}

/// Which of the arithmetic flags the host's flags hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InHost {
    Nothing,
    AllButOverflow,
    All,
}

/// A way out of a block that is seldom taken.
#[derive(Debug)]
struct Stub {
    label: Label,
    unsaved: Vec<(u8, Host)>,
    leave: Leave,
}

/// Translates blocks, one at a time.
#[derive(Debug, Default)]
pub(super) struct Translation {
    asm: Asm,
    registers: Registers,
    stubs: Vec<Stub>,
}

/// What both halves of an emitted block are, for whoever places it.
#[derive(Debug)]
pub(super) struct Emitted<'e> {
    /// The code. It can be put anywhere.
    pub code: &'e [u8],
    /// Where in it each cell leads as long as nothing is known of the next block.
    pub unlinked: [usize; 2],
}

impl Translation {
    /// Translate. None if it cannot be.
    pub(super) fn translate(&mut self, source: &Source<'_>, places: &Places) -> Option<Emitted<'_>> {
        self.asm.clear();
        self.registers.clear();
        self.stubs.clear();
        let offset = source.ops.first()?.off;
        let mut decoder = Decoder::with_ip(64, source.bytes, u64::from(offset), OPTIONS);
        let instructions: Vec<Instruction> = source.ops.iter().map(|_| decoder.decode()).collect();
        let plain = plain(&instructions, source.ops);
        let ends = self.asm.label();
        let mut block = Emitter {
            asm: &mut self.asm,
            registers: &mut self.registers,
            stubs: &mut self.stubs,
            encoder: Encoder::new(64),
            source,
            places,
            instructions: &instructions,
            plain: &plain,
            in_host: InHost::Nothing,
            known: None,
            ends,
            unlinked: [ends; 2],
            linked: [false; 2],
        };
        block.emit()?;
        let unlinked = block.finish();
        let unlinked = unlinked.map(|label| self.asm.place(label));
        Some(Emitted { code: self.asm.finish(), unlinked })
    }
}

struct Emitter<'e> {
    asm: &'e mut Asm,
    registers: &'e mut Registers,
    stubs: &'e mut Vec<Stub>,
    encoder: Encoder,
    source: &'e Source<'e>,
    places: &'e Places,
    instructions: &'e [Instruction],
    /// Which of them are translated, and who sees the flags that they leave.
    plain: &'e [Plain],
    /// What the host's flags hold of the guest's.
    in_host: InHost,
    /// What the operands in [`super::Native`] are of, if that is known here: operation and width.
    known: Option<(Operation, u8)>,
    /// The way out.
    ends: Label,
    unlinked: [Label; 2],
    linked: [bool; 2],
}

const LEFT: i32 = offset_of!(Core, native.left) as i32;
const KIND: i32 = offset_of!(Core, native.kind) as i32;
const X: i32 = offset_of!(Core, native.x) as i32;
const Y: i32 = offset_of!(Core, native.y) as i32;
const GENERATIONS: i32 = offset_of!(Core, native.generations) as i32;
const JUMPS: i32 = offset_of!(Core, native.jumps) as i32;
const TABLE: i32 = offset_of!(Core, mem.tlb.table) as i32;
const RIP: i32 = offset_of!(Core, rip) as i32;

impl Emitter<'_> {
    fn emit(&mut self) -> Option<()> {
        self.begin();
        let last = self.source.ops.len() - 1;
        for n in 0..=last {
            let i = self.instructions[n];
            if n == last && lower(&i).1 == Kind::Ends {
                self.end(&i, n)?;
                return Some(());
            }
            if self.plain[n].translated {
                self.plain(&i, n)?;
            } else if !self.special(&i, n) {
                self.handler(n);
            }
            self.registers.unpin();
        }
        // The bound of a block, or the end of its page.
        self.registers.save(self.asm);
        let next = u32::from(self.source.ops[last].off) + u32::from(self.source.ops[last].len);
        self.go_on(next as i32, 0, None);
        Some(())
    }

    /// Whether the block is still what it was, and whether it fits before the next stop.
    fn begin(&mut self) {
        let stale = self.asm.label();
        self.asm.load(R11, R15, GENERATIONS);
        self.asm.load32(R11, R11, (self.source.page * 4) as i32);
        self.asm.set(R13, self.places.generation);
        self.asm.alu32_memory(Alu::Cmp, R11, R13, 0);
        self.asm.jump_if(NOT_EQUAL, stale);
        self.asm.alu_imm(Alu::Sub, R12, self.source.ops.len() as i32);
        let full = self.asm.label();
        self.asm.jump_if(BELOW, full);
        self.stubs.push(Stub { label: stale, unsaved: Vec::new(), leave: Leave::Again { charged: false } });
        self.stubs.push(Stub { label: full, unsaved: Vec::new(), leave: Leave::Again { charged: true } });
    }

    /// A way out before instruction `n`, which the interpreter executes, and all that follow.
    fn otherwise(&mut self, n: usize) -> Label {
        let label = self.asm.label();
        let unsaved = self.registers.unsaved();
        self.stubs.push(Stub { label, unsaved, leave: Leave::Interpret { n: n as u32 } });
        label
    }

    /// All seldom taken ways out, and the one behind them.
    fn finish(&mut self) -> [Label; 2] {
        let offset = i32::from(self.source.ops[0].off);
        for stub in std::mem::take(self.stubs) {
            self.asm.bind(stub.label);
            for (guest, host) in stub.unsaved {
                self.asm.store(R15, at_slot(guest), host);
            }
            match stub.leave {
                Leave::Again { charged } => {
                    if charged {
                        self.asm.alu_imm(Alu::Add, R12, self.source.ops.len() as i32);
                    }
                    self.leave_for(offset, 0);
                }
                Leave::Interpret { n } => {
                    self.asm.set(RAX, leave_word(super::INTERPRET, self.source.id, n));
                    self.asm.jump(self.ends);
                }
                Leave::Next { offset, cell } => self.leave_for(offset, cell),
                Leave::Far => {
                    self.asm.store(R15, RIP, R13);
                    self.asm.set(RAX, leave_word(super::NEXT, 0, 0));
                    self.asm.jump(self.ends);
                }
            }
        }
        self.asm.bind(self.ends);
        self.asm.set(R11, self.places.leave);
        self.asm.jump_register(R11);
        let all = self.unlinked;
        for (label, linked) in all.into_iter().zip(self.linked) {
            debug_assert!(linked || label == self.ends);
        }
        all
    }
    /// Leave for an instruction of the same page.
    fn leave_for(&mut self, offset: i32, cell: u32) {
        self.asm.load(R13, R15, at_slot(slot::PAGE));
        self.asm.add_to(R13, R13, offset);
        self.asm.store(R15, RIP, R13);
        self.asm.set(RAX, leave_word(super::NEXT, cell, 0));
        self.asm.jump(self.ends);
    }

    // ---- operands ----

    /// R13 = the linear address of a memory operand, segment base included.
    fn address(&mut self, op: &Op) {
        let slot_value = |n: u8| n != slot::ZERO && n < 16;
        let base = slot_value(op.base).then(|| self.registers.get(self.asm, op.base, true));
        let index = slot_value(op.index).then(|| self.registers.get(self.asm, op.index, true));
        match (base, index) {
            (Some(base), Some(index)) => self.asm.sum(R13, base, index, op.scale & 3, op.disp),
            (Some(base), None) => self.asm.add_to(R13, base, op.disp),
            (None, Some(index)) => self.asm.scaled(R13, index, op.scale & 3, op.disp),
            (None, None) if op.base == slot::ZERO => self.asm.set(R13, op.disp as i64 as u64),
            (None, None) => {
                self.asm.load(R13, R15, at_slot(op.base));
                self.asm.add_to(R13, R13, op.disp);
            }
        }
        if op.seg != slot::ZERO {
            self.asm.alu_memory(Alu::Add, R13, R15, at_slot(op.seg));
            self.in_host = InHost::Nothing;
        }
    }
    /// R14 = the TLB's entry for the address in R13.
    fn entry(&mut self) {
        self.asm.copy(R14, R13);
        self.asm.shift_right(R14, 12 - tlb::ENTRY_SHIFT);
        self.asm.and32(R14, (self.source.tlb_mask << tlb::ENTRY_SHIFT) as u32);
        self.asm.alu_memory(Alu::Add, R14, R15, TABLE);
        self.in_host = InHost::Nothing;
    }
    /// R13 = the host address of so many bytes at the linear address in R13, or leave to the interpreter.
    fn check(&mut self, size: usize, write: bool, n: usize) {
        self.entry();
        self.asm.add_to(R11, R13, size as i32 - 1);
        self.asm.alu_imm(Alu::And, R11, -4096);
        self.asm.alu_memory(Alu::Cmp, R11, R14, if write { tlb::WRITE } else { tlb::READ } as i32);
        let miss = self.otherwise(n);
        self.asm.jump_if(NOT_EQUAL, miss);
        self.asm.alu_memory(Alu::Add, R13, R14, tlb::ADDEND as i32);
    }

    // ---- flags ----

    /// Have the host's flags be the guest's, as far as a condition looks. R13 keeps its value; registers may move.
    fn need_flags(&mut self, condition: u8) {
        let overflow = matches!(condition, 0 | 1 | 12..=15);
        match (self.in_host, self.known) {
            (InHost::All, _) => return,
            (InHost::AllButOverflow, _) if !overflow => return,
            (_, Some((Operation::Logic, log2))) => {
                self.asm.load(R14, R15, X);
                self.asm.test(log2, R14, R14);
            }
            (_, Some((operation @ (Operation::Add | Operation::Sub), log2))) => {
                self.asm.load(R14, R15, X);
                self.asm.load(R11, R15, Y);
                let alu = if operation == Operation::Add { Alu::Add } else { Alu::Sub };
                self.asm.alu_by_width(alu, log2, R14, R11);
            }
            _ => {
                self.registers.save(self.asm);
                self.registers.forget();
                self.asm.copy(RDI, R15);
                self.asm.set(RAX, self.places.read_flags);
                self.asm.call(RAX);
                self.asm.push(RAX);
                self.asm.pop_flags();
                // They are where the interpreter has them now.
                self.known = None;
            }
        }
        self.in_host = InHost::All;
    }
    /// Say what the operands are of that were stored.
    fn keep_kind(&mut self, operation: Operation, log2: u8) {
        // Storing the same number again would change nothing.
        if self.known != Some((operation, log2)) {
            self.asm.store32_imm(R15, KIND, lazy::kind(operation, log2));
        }
        self.known = Some((operation, log2));
    }

    // ---- instructions ----

    /// An instruction whose operands are all it says, and which the host executes as it is, on other registers.
    fn plain(&mut self, i: &Instruction, n: usize) -> Option<()> {
        let op = &self.source.ops[n];
        let memory = (0..i.op_count()).find(|&k| is_memory(i, k));
        let is_lea = i.mnemonic() == Mnemonic::Lea;
        let only_reads = matches!(i.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
        if is_lea {
            return self.lea(i, op);
        }
        if let Some(k) = memory {
            self.address(op);
            self.check(i.memory_size().size(), k == 0 && !only_reads, n);
        }
        let condition = i.condition_code();
        if condition != ConditionCode::None {
            self.need_flags(condition as u8 - 1);
        }
        let mut out = *i;
        let mut hosts = [None; 3];
        for k in 0..i.op_count() {
            if i.op_kind(k) != OpKind::Register {
                continue;
            }
            let register = i.op_register(k);
            let load = !(k == 0 && writes_whole(i));
            let host = self.registers.get(self.asm, gpr(register), load);
            out.set_op_register(k, named(host, register.size()));
            hosts[k as usize] = Some(host);
        }
        if memory.is_some() {
            out.set_memory_base(Register::R13);
            out.set_memory_index(Register::None);
            out.set_memory_index_scale(1);
            out.set_memory_displacement64(0);
            out.set_memory_displ_size(0);
            out.set_segment_prefix(Register::None);
        }
        // Nobody else is there.
        out.set_has_lock_prefix(false);
        let log2 = width(i, 0).trailing_zeros() as u8;
        let operation = operation(i);
        let whole = leaves_all_in_host(i);
        let seen = operation.is_some() && self.plain[n].seen;
        if seen {
            self.keep_operands(i, operation?, log2, &hosts);
        }
        self.encoder.encode(&out, 0).ok()?;
        let code = self.encoder.take_buffer();
        self.asm.raw(&code);
        self.encoder.set_buffer({
            let mut code = code;
            code.clear();
            code
        });
        if is_gpr(i, 0) && !only_reads {
            self.registers.wrote(gpr(i.op0_register()));
        }
        if i.mnemonic() == Mnemonic::Xchg {
            self.registers.wrote(gpr(i.op1_register()));
        }
        if let Some(operation) = operation {
            self.in_host = if whole { InHost::All } else { InHost::AllButOverflow };
            if seen && operation == Operation::Logic && !only_reads {
                self.keep_result(log2, hosts[0]);
            }
            if seen {
                self.keep_kind(operation, log2);
            } else {
                self.known = None;
            }
        } else if i.rflags_modified() & ARITH != 0 {
            // Nobody sees them, or it would not have been translated.
            (self.in_host, self.known) = (InHost::Nothing, None);
        }
        Some(())
    }
    /// Store what an operation's flags will be computed from, before it is done.
    fn keep_operands(&mut self, i: &Instruction, operation: Operation, log2: u8, hosts: &[Option<Host>; 3]) {
        match operation {
            Operation::Logic => {
                if i.mnemonic() == Mnemonic::Test {
                    self.keep_test(i, log2, hosts);
                }
            }
            Operation::Sub if i.mnemonic() == Mnemonic::Neg => {
                self.asm.store_imm(R15, X, 0);
                let host = self.operand(log2, hosts[0]);
                self.asm.store(R15, Y, host);
            }
            _ => {
                let host = self.operand(log2, hosts[0]);
                self.asm.store(R15, X, host);
                if is_immediate(i, 1) {
                    self.asm.store_imm(R15, Y, i.immediate(1) as i64 as i32);
                } else if operation == Operation::Add || operation == Operation::Sub {
                    let host = self.operand(log2, hosts[1]);
                    self.asm.store(R15, Y, host);
                } else {
                    // A shift by one, which has no operand for it.
                    self.asm.store_imm(R15, Y, 1);
                }
            }
        }
    }
    /// TEST's result, which it does not keep.
    fn keep_test(&mut self, i: &Instruction, log2: u8, hosts: &[Option<Host>; 3]) {
        let host = self.operand(log2, hosts[0]);
        if hosts[0].is_some() && hosts[0] == hosts[1] {
            self.asm.store(R15, X, host);
            return;
        }
        self.asm.copy(R14, host);
        if is_immediate(i, 1) {
            self.asm.alu_imm(Alu::And, R14, i.immediate(1) as i64 as i32);
        } else if let Some(other) = hosts[1] {
            self.asm.alu(Alu::And, R14, other);
        }
        self.asm.store(R15, X, R14);
    }
    /// The register with an operand; what is in memory comes to R14.
    fn operand(&mut self, log2: u8, host: Option<Host>) -> Host {
        host.unwrap_or_else(|| {
            self.asm.load_by_width(log2, R14, R13, 0);
            R14
        })
    }
    fn keep_result(&mut self, log2: u8, host: Option<Host>) {
        let host = self.operand(log2, host);
        self.asm.store(R15, X, host);
    }
    fn lea(&mut self, i: &Instruction, op: &Op) -> Option<()> {
        // Its segment base does not count.
        let near = Op { seg: slot::ZERO, ..*op };
        self.address(&near);
        let dst = gpr(i.op0_register());
        let host = self.registers.get(self.asm, dst, false);
        if i.op0_register().size() == 8 {
            self.asm.copy(host, R13);
        } else {
            self.asm.copy32(host, R13);
        }
        self.registers.wrote(dst);
        Some(())
    }
    /// Instructions with operands that they do not name. Whether it was one.
    fn special(&mut self, i: &Instruction, n: usize) -> bool {
        match i.mnemonic() {
            Mnemonic::Push if i.stack_pointer_increment() == -8 && (is_gpr(i, 0) || is_immediate(i, 0)) => {
                let sp = self.registers.get(self.asm, GUEST_RSP, true);
                self.asm.add_to(R13, sp, -8);
                self.check(8, true, n);
                if is_immediate(i, 0) {
                    self.asm.store_imm(R13, 0, i.immediate(0) as i64 as i32);
                } else {
                    let host = self.registers.get(self.asm, gpr(i.op0_register()), true);
                    self.asm.store(R13, 0, host);
                }
                self.asm.add_to(sp, sp, -8);
                self.registers.wrote(GUEST_RSP);
            }
            Mnemonic::Pop if i.stack_pointer_increment() == 8 && is_gpr(i, 0) => {
                let sp = self.registers.get(self.asm, GUEST_RSP, true);
                self.asm.copy(R13, sp);
                self.check(8, false, n);
                self.asm.add_to(sp, sp, 8);
                self.registers.wrote(GUEST_RSP);
                let dst = gpr(i.op0_register());
                let host = self.registers.get(self.asm, dst, false);
                self.asm.load(host, R13, 0);
                self.registers.wrote(dst);
            }
            Mnemonic::Leave if i.code() == Code::Leaveq => {
                let bp = self.registers.get(self.asm, 5, true);
                self.asm.copy(R13, bp);
                self.check(8, false, n);
                let sp = self.registers.get(self.asm, GUEST_RSP, false);
                self.asm.add_to(sp, bp, 8);
                self.registers.wrote(GUEST_RSP);
                self.asm.load(bp, R13, 0);
                self.registers.wrote(5);
            }
            Mnemonic::Cdqe => {
                let host = self.registers.get(self.asm, 0, true);
                self.asm.extend32(host, host);
                self.registers.wrote(0);
            }
            Mnemonic::Cwde => {
                let host = self.registers.get(self.asm, 0, true);
                self.asm.extend16(host, host);
                self.registers.wrote(0);
            }
            Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Pause => {}
            _ => return false,
        }
        true
    }

    /// Have an instruction's handler execute it.
    fn handler(&mut self, n: usize) {
        self.registers.save(self.asm);
        self.registers.forget();
        self.asm.store(R15, LEFT, R12);
        self.asm.copy(RDI, R15);
        self.asm.set(RSI, u64::from(self.source.ops_start) + n as u64);
        self.asm.set(RDX, self.source.ops.len() as u64);
        self.asm.set(RAX, self.places.call_op);
        self.asm.call(RAX);
        self.asm.test(2, RAX, RAX);
        let goes_on = self.asm.label();
        self.asm.jump_if(super::asm::EQUAL, goes_on);
        self.asm.set(R11, leave_word(super::STOPPED, self.source.id, n as u32));
        self.asm.shift_left(RAX, super::STOP_SHIFT);
        self.asm.alu(Alu::Add, RAX, R11);
        self.asm.jump(self.ends);
        self.asm.bind(goes_on);
        self.in_host = InHost::Nothing;
        self.known = None;
    }

    // ---- the block's end ----

    /// The last instruction, which decides what comes next.
    fn end(&mut self, i: &Instruction, n: usize) -> Option<()> {
        let op = &self.source.ops[n];
        let after = i32::from(op.off) + i32::from(op.len);
        let direct =
            matches!(i.op0_kind(), OpKind::NearBranch64) && i32::try_from(i.near_branch64() as i64).is_ok();
        match i.mnemonic() {
            Mnemonic::Jmp if direct => {
                self.registers.save(self.asm);
                self.go_on(op.disp, 0, Some(n));
            }
            _ if i.is_jcc_short_or_near() && direct => {
                self.need_flags(i.condition_code() as u8 - 1);
                self.registers.save(self.asm);
                let taken = self.asm.label();
                self.asm.jump_if(i.condition_code() as u8 - 1, taken);
                self.go_on(after, 0, None);
                self.asm.bind(taken);
                self.go_on(op.disp, 1, Some(n));
            }
            Mnemonic::Call if direct => {
                self.registers.save(self.asm);
                self.push_return(after, n);
                if in_page(op.disp) {
                    self.move_stack(-8);
                    self.go_on(op.disp, 0, Some(n));
                } else {
                    self.asm.load(R13, R15, at_slot(slot::PAGE));
                    self.asm.add_to(R13, R13, op.disp);
                    self.far(Some(n), -8);
                }
            }
            Mnemonic::Call if i.code() == Code::Call_rm64 && (is_gpr(i, 0) || is_near_memory(i, op)) => {
                self.registers.save(self.asm);
                self.target(i, op, n);
                self.asm.copy(RSI, R13);
                self.push_return(after, n);
                self.asm.copy(R13, RSI);
                self.far(Some(n), -8);
            }
            Mnemonic::Jmp if i.code() == Code::Jmp_rm64 && (is_gpr(i, 0) || is_near_memory(i, op)) => {
                self.registers.save(self.asm);
                self.target(i, op, n);
                self.far(Some(n), 0);
            }
            Mnemonic::Ret => {
                self.registers.save(self.asm);
                self.asm.load(R13, R15, at_slot(GUEST_RSP));
                self.check(8, false, n);
                self.asm.load(R13, R13, 0);
                self.far(Some(n), 8 + op.imm as i32);
            }
            _ => {
                let label = self.otherwise(n);
                self.asm.jump(label);
            }
        }
        Some(())
    }
    /// R13 = where an indirect branch leads.
    fn target(&mut self, i: &Instruction, op: &Op, n: usize) {
        if is_memory(i, 0) {
            self.address(op);
            self.check(8, false, n);
            self.asm.load(R13, R13, 0);
        } else {
            let host = self.registers.get(self.asm, gpr(i.op0_register()), true);
            self.asm.copy(R13, host);
        }
    }
    /// Store a return address below the stack pointer, which stays as it is. RSI keeps its value.
    fn push_return(&mut self, after: i32, n: usize) {
        self.asm.load(R13, R15, at_slot(GUEST_RSP));
        self.asm.add_to(R13, R13, -8);
        self.check(8, true, n);
        self.asm.load(R14, R15, at_slot(slot::PAGE));
        self.asm.add_to(R14, R14, after);
        self.asm.store(R13, 0, R14);
    }
    fn move_stack(&mut self, by: i32) {
        self.asm.load(R14, R15, at_slot(GUEST_RSP));
        self.asm.add_to(R14, R14, by);
        self.asm.store(R15, at_slot(GUEST_RSP), R14);
    }
    /// Go on at an offset from the page's start. All registers are saved.
    fn go_on(&mut self, offset: i32, cell: usize, n: Option<usize>) {
        if !in_page(offset) {
            self.asm.load(R13, R15, at_slot(slot::PAGE));
            self.asm.add_to(R13, R13, offset);
            self.far(n, 0);
            return;
        }
        self.asm.set(R11, self.places.cells[cell]);
        self.asm.jump_memory(R11, 0);
        let label = self.asm.label();
        let cell_number = self.places.first_cell + cell as u32;
        self.stubs.push(Stub {
            label,
            unsaved: Vec::new(),
            leave: Leave::Next { offset, cell: cell_number },
        });
        self.unlinked[cell] = label;
        self.linked[cell] = true;
    }
    /// Go to the linear address in R13, whatever page that is on, and change the stack pointer if that is possible. All
    /// registers are saved. `n` is the instruction that does it, which the interpreter executes where the address is not
    /// known to be executable; without one that is found out behind it.
    fn far(&mut self, n: Option<usize>, stack: i32) {
        self.entry();
        self.asm.copy(RAX, R13);
        self.asm.alu_imm(Alu::And, RAX, -4096);
        self.asm.alu_memory(Alu::Cmp, RAX, R14, tlb::EXEC as i32);
        let behind = self.asm.label();
        self.stubs.push(Stub { label: behind, unsaved: Vec::new(), leave: Leave::Far });
        let unknown = match n {
            Some(n) => self.otherwise(n),
            None => behind,
        };
        self.asm.jump_if(NOT_EQUAL, unknown);
        if stack != 0 {
            let kept = RSI;
            self.asm.load(kept, R15, at_slot(GUEST_RSP));
            self.asm.add_to(kept, kept, stack);
            self.asm.store(R15, at_slot(GUEST_RSP), kept);
        }
        self.asm.store(R15, at_slot(slot::PAGE), RAX);
        self.asm.add_to(RAX, RAX, 1 << 30);
        self.asm.store(R15, at_slot(slot::PAGE_FAR), RAX);
        self.asm.copy(RDX, R13);
        self.asm.alu_memory(Alu::Add, RDX, R14, tlb::ADDEND as i32);
        self.asm.copy(RDI, RDX);
        self.asm.and32(RDI, super::JUMP_MASK as u32);
        self.asm.shift_left(RDI, super::JUMP_SHIFT);
        self.asm.alu_memory(Alu::Add, RDI, R15, JUMPS);
        self.asm.alu_memory(Alu::Cmp, RDX, RDI, 0);
        self.asm.jump_if(NOT_EQUAL, behind);
        self.asm.jump_memory(RDI, 8);
    }
}

/// Whether an offset from the page's start is in it.
fn in_page(offset: i32) -> bool {
    (0..4096).contains(&offset)
}

/// A host register as the decoder names it, in so many bytes.
fn named(host: Host, bytes: usize) -> Register {
    let n = u32::from(host.0);
    match bytes {
        1 if n < 4 => Register::AL + n,
        1 if n < 8 => Register::SPL + (n - 4),
        1 => Register::R8L + (n - 8),
        2 => Register::AX + n,
        4 => Register::EAX + n,
        _ => Register::RAX + n,
    }
}

/// Whether a memory operand's address is the sum of slots that [`Emitter::address`] computes.
fn is_near_memory(i: &Instruction, op: &Op) -> bool {
    (0..i.op_count()).any(|k| is_memory(i, k)) && op.scale & ADDRESS_32 == 0
}

/// What late flags an instruction leaves.
fn operation(i: &Instruction) -> Option<Operation> {
    Some(match i.mnemonic() {
        Mnemonic::Add => Operation::Add,
        Mnemonic::Sub | Mnemonic::Cmp | Mnemonic::Neg => Operation::Sub,
        Mnemonic::And | Mnemonic::Or | Mnemonic::Xor | Mnemonic::Test => Operation::Logic,
        Mnemonic::Shl | Mnemonic::Sal if is_immediate(i, 1) => Operation::Shl,
        Mnemonic::Shr if is_immediate(i, 1) => Operation::Shr,
        Mnemonic::Sar if is_immediate(i, 1) => Operation::Sar,
        _ => return None,
    })
}

/// Whether the first operand is a register that is written without being read, all of it.
fn writes_whole(i: &Instruction) -> bool {
    let moves = matches!(i.mnemonic(), Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd);
    (moves || i.mnemonic() == Mnemonic::Imul && i.op_count() == 3)
        && i.op0_register().size() >= 4
        && !(is_gpr(i, 1) && gpr(i.op1_register()) == gpr(i.op0_register()))
}

/// Whether [`Emitter::plain`] can translate it.
fn can_be_plain(i: &Instruction, op: &Op) -> bool {
    let simple = |k: u32| match i.op_kind(k) {
        OpKind::Register => {
            i.op_register(k).is_gpr()
                && !matches!(i.op_register(k), Register::AH | Register::BH | Register::CH | Register::DH)
        }
        OpKind::Memory => is_near_memory(i, op),
        _ => is_immediate(i, k),
    };
    if !(0..i.op_count()).all(simple) {
        return false;
    }
    match i.mnemonic() {
        Mnemonic::Mov => !is_absolute_move(i),
        Mnemonic::Lea => i.op0_register().size() >= 4 && op.scale & ADDRESS_32 == 0,
        Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd | Mnemonic::Not => true,
        Mnemonic::Add
        | Mnemonic::Sub
        | Mnemonic::And
        | Mnemonic::Or
        | Mnemonic::Xor
        | Mnemonic::Cmp
        | Mnemonic::Test
        | Mnemonic::Neg => true,
        Mnemonic::Bswap => i.op0_register().size() >= 4,
        Mnemonic::Xchg => is_gpr(i, 0) && is_gpr(i, 1) && i.op0_register() != i.op1_register(),
        // Their flags are translated only where nobody sees them.
        Mnemonic::Inc | Mnemonic::Dec => true,
        Mnemonic::Imul => i.op_count() >= 2,
        Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shr | Mnemonic::Sar if !is_immediate(i, 1) => {
            is_gpr(i, 0) && width(i, 0) >= 4
        }
        Mnemonic::Rol | Mnemonic::Ror => is_gpr(i, 0) && width(i, 0) >= 4,
        Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shr | Mnemonic::Sar => {
            is_gpr(i, 0) && is_immediate(i, 1) && {
                let bits = 8 * width(i, 0) as u64;
                let count = i.immediate(1) & if bits == 64 { 63 } else { 31 };
                // Beyond the width hardware does as it likes.
                count == i.immediate(1) && (1..bits).contains(&count)
            }
        }
        _ => {
            let cc = i.condition_code() != ConditionCode::None;
            cc && !i.is_jcc_short_or_near() && matches!(i.op0_kind(), OpKind::Register | OpKind::Memory)
        }
    }
}

/// MOV of the accumulator from or to an absolute address.
fn is_absolute_move(i: &Instruction) -> bool {
    matches!(
        i.code(),
        Code::Mov_AL_moffs8
            | Code::Mov_AX_moffs16
            | Code::Mov_EAX_moffs32
            | Code::Mov_RAX_moffs64
            | Code::Mov_moffs8_AL
            | Code::Mov_moffs16_AX
            | Code::Mov_moffs32_EAX
            | Code::Mov_moffs64_RAX
    )
}

/// How an instruction of a block is dealt with.
#[derive(Debug, Clone, Copy)]
struct Plain {
    /// By [`Emitter::plain`].
    translated: bool,
    /// Somebody may look at the flags that it leaves, other than by the host's own.
    seen: bool,
}

/// Decide for all instructions of a block, from the last to the first: what one leaves is seen or not by those behind it.
fn plain(instructions: &[Instruction], ops: &[Op]) -> Vec<Plain> {
    let mut all = vec![Plain { translated: false, seen: true }; ops.len()];
    for n in (0..ops.len()).rev() {
        let i = &instructions[n];
        let seen = flags_are_seen(n, instructions, &all);
        let writes = i.rflags_modified() & ARITH != 0;
        let told = operation(i).is_some() || !writes;
        all[n] = Plain { translated: can_be_plain(i, &ops[n]) && (told || !seen), seen };
    }
    all
}

/// Whether somebody may look at the flags that instruction `n` leaves, other than by the host's own.
fn flags_are_seen(n: usize, instructions: &[Instruction], all: &[Plain]) -> bool {
    let mut read = false;
    for (i, plain) in instructions.iter().zip(all).skip(n + 1) {
        if !is_quiet(i, *plain) {
            return true;
        }
        read |= i.rflags_read() & ARITH != 0;
        if i.rflags_modified() & ARITH == ARITH && !counts_by_register(i) {
            return read && !leaves_all_in_host(&instructions[n]);
        }
    }
    true
}

/// Whether the host's flags hold all of what a translated instruction leaves.
fn leaves_all_in_host(i: &Instruction) -> bool {
    match operation(i) {
        Some(Operation::Shl | Operation::Shr | Operation::Sar) => i.immediate(1) == 1,
        operation => operation.is_some(),
    }
}

/// A shift by CL, which leaves the flags as they are if that is zero.
fn counts_by_register(i: &Instruction) -> bool {
    i.op_count() == 2
        && i.op_kind(1) == OpKind::Register
        && i.op_register(1) == Register::CL
        && i.mnemonic() != Mnemonic::Mov
}

/// Whether an instruction goes on to the next one whatever happens.
fn is_quiet(i: &Instruction, plain: Plain) -> bool {
    let no_memory = (0..i.op_count()).all(|k| !is_memory(i, k));
    (no_memory || i.mnemonic() == Mnemonic::Lea) && plain.translated
        || matches!(i.mnemonic(), Mnemonic::Cdqe | Mnemonic::Cwde)
}

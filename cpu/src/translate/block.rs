//! A block's translation: guest instructions to host code, one after the other.
//!
//! An instruction is either translated, or left to its handler within the block, or, where a block ends in a way that is
//! not known here, left to the interpreter with all that follows. The same holds for whatever is out of the ordinary: an
//! access that misses the software TLB leaves the block with everything as it was before the instruction, and the
//! interpreter executes it and the rest. So exceptions, devices, stores to code and page tables are the interpreter's.

use std::mem::offset_of;

use iced_x86::{Decoder, Encoder, Instruction, RflagsBits};

use super::asm::{Alu, Asm, BELOW, Host, Label, NOT_EQUAL, R11, R12, R13, R15, RAX};
use super::choice::{Plain, plain};
use super::lazy::Operation;
use super::leave_word;
use super::registers::{Registers, slot as at_slot};
use crate::core::Core;
use crate::decode::block::OPTIONS;
use crate::decode::lower::lower;
use crate::op::{Kind, Op, slot};

pub(super) const GUEST_RSP: u8 = 4;
/// All six arithmetic flags.
pub(super) const ARITH: u32 =
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
pub(super) enum InHost {
    Nothing,
    AllButOverflow,
    All,
}

/// How a block is left.
#[derive(Debug, Clone, Copy)]
pub(super) enum Leave {
    /// It was not entered after all, though it may have been counted.
    Again { charged: bool },
    /// From an instruction on, the interpreter's.
    Interpret { n: u32 },
    /// On to an offset of the same page.
    Next { offset: i32, cell: u32 },
    /// On to the linear address in R13.
    Far,
}

/// A way out of a block that is seldom taken.
#[derive(Debug)]
pub(super) struct Stub {
    pub label: Label,
    pub unsaved: Vec<(u8, Host)>,
    pub leave: Leave,
}

/// Translates blocks, one at a time.
#[derive(Debug, Default)]
pub(super) struct Translation {
    asm: Asm,
    registers: Registers,
    stubs: Vec<Stub>,
}

/// A block's code, for whoever places it.
#[derive(Debug)]
pub(super) struct Emitted<'e> {
    /// The code. It can be put anywhere.
    pub code: &'e [u8],
    /// Where in it each cell leads as long as nothing is known of the next block.
    pub unlinked: [usize; 2],
}

impl Translation {
    /// Translate.
    pub(super) fn translate(&mut self, source: &Source<'_>, places: &Places) -> Emitted<'_> {
        self.asm.clear();
        self.registers.clear();
        self.stubs.clear();
        let offset = source.ops[0].off;
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
        };
        block.emit();
        let unlinked = block.finish().map(|label| self.asm.place(label));
        Emitted { code: self.asm.finish(), unlinked }
    }
}

pub(super) struct Emitter<'e> {
    pub asm: &'e mut Asm,
    pub registers: &'e mut Registers,
    pub stubs: &'e mut Vec<Stub>,
    pub encoder: Encoder,
    pub source: &'e Source<'e>,
    pub places: &'e Places,
    pub instructions: &'e [Instruction],
    /// Which of them are translated, and who sees the flags that they leave.
    pub plain: &'e [Plain],
    /// What the host's flags hold of the guest's.
    pub in_host: InHost,
    /// What the operands in [`super::Native`] are of, if that is known here: operation and width.
    pub known: Option<(Operation, u8)>,
    /// The way out.
    pub ends: Label,
    /// Where the cells lead as long as nothing is known.
    pub unlinked: [Label; 2],
}

pub(super) const LEFT: i32 = offset_of!(Core, native.left) as i32;
pub(super) const KIND: i32 = offset_of!(Core, native.kind) as i32;
pub(super) const X: i32 = offset_of!(Core, native.x) as i32;
pub(super) const Y: i32 = offset_of!(Core, native.y) as i32;
const GENERATIONS: i32 = offset_of!(Core, native.generations) as i32;
pub(super) const JUMPS: i32 = offset_of!(Core, native.jumps) as i32;
pub(super) const TABLE: i32 = offset_of!(Core, mem.tlb.table) as i32;
const RIP: i32 = offset_of!(Core, rip) as i32;

impl Emitter<'_> {
    fn emit(&mut self) {
        self.begin();
        let last = self.source.ops.len() - 1;
        for n in 0..=last {
            let i = self.instructions[n];
            if n == last && lower(&i).1 == Kind::Ends {
                return self.end(&i, n);
            }
            if self.plain[n].translated {
                self.plain(&i, n);
            } else if !self.special(&i, n) {
                self.handler(n);
            }
            self.registers.unpin();
        }
        // The bound of a block, or the end of its page.
        self.registers.save(self.asm);
        let next = u32::from(self.source.ops[last].off) + u32::from(self.source.ops[last].len);
        self.go_on(next as i32, 0, None);
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
    pub(super) fn otherwise(&mut self, n: usize) -> Label {
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
        self.unlinked
    }
    /// Leave for an instruction of the same page.
    fn leave_for(&mut self, offset: i32, cell: u32) {
        self.asm.load(R13, R15, at_slot(slot::PAGE));
        self.asm.add_to(R13, R13, offset);
        self.asm.store(R15, RIP, R13);
        self.asm.set(RAX, leave_word(super::NEXT, cell, 0));
        self.asm.jump(self.ends);
    }
}

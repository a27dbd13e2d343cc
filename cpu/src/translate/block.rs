//! A block's translation: guest instructions to host code, one after the other.
//!
//! An instruction is either translated, or left to its handler within the block, or, where a block ends in a way that is
//! not known here, left to the interpreter with all that follows. The same holds for whatever is out of the ordinary: an
//! access that misses the software TLB leaves the block with everything as it was before the instruction, and the
//! interpreter executes it and the rest. So exceptions, devices, stores to code and page tables are the interpreter's.

use iced_x86::{Decoder, Encoder, Instruction, RflagsBits};

use super::asm::{Alu, Asm, BELOW, EQUAL, Label, R10, R11, R13, R15};
use super::choice::{Plain, plain};
use super::frame::slot as at_slot;
use super::lazy::Operation;
use super::links::Links;
use super::registers::Registers;
use super::routines::Routines;
use super::sites::{FULL, Sites, WAYS};
use super::vectors::can_be_vector;
use super::{INTERPRET, NO_SITE};
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
    /// What its page holds, and where in it the block begins.
    pub place: u64,
    /// What else is known.
    pub expected: Expected,
}

/// What is known of where a block is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// The word of its place if edges are asked for, or 0.
    pub named: u64,
    /// The number of what the next page holds, if its only instruction goes on there.
    pub second: Option<u64>,
    /// The place of the block that came after it the last time.
    pub next: Option<u64>,
    /// It ends with a branch that is to be counted.
    pub counts: bool,
}

/// Where things are that translated code refers to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'p> {
    /// Where all code begins.
    pub base: u64,
    /// Where this block's will lie.
    pub next: u64,
    /// What all share.
    pub routines: Routines,
    /// What is translated.
    pub links: &'p Links,
}

/// Which of the arithmetic flags the host's flags hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InHost {
    Nothing,
    AllButOverflow,
    All,
}

/// Translates blocks, one at a time.
#[derive(Debug, Default)]
pub(super) struct Translation {
    asm: Asm,
    registers: Registers,
}

/// Where a block goes on: two ways at most that are known.
pub(super) type Ways = [Option<Way>; 2];

/// A jump to another block, on the page that is current then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    /// Its place.
    pub place: u64,
    /// Where the displacement lies that would lead there, and the label that it leads to as long as there is no translation.
    pub open: Option<(u64, Label)>,
}

/// A block's code, for whoever places it.
#[derive(Debug)]
pub(super) struct Emitted<'e> {
    /// The code, for where [`Places::next`] is.
    pub code: &'e [u8],
    /// Where it goes on.
    pub ways: Ways,
}

impl Translation {
    /// Translate.
    pub(super) fn translate(
        &mut self,
        source: &Source<'_>,
        places: &Places<'_>,
        sites: &mut Sites,
    ) -> Emitted<'_> {
        self.asm.clear(places.next);
        self.registers.clear();
        let offset = source.ops[0].off;
        let mut decoder = Decoder::with_ip(64, source.bytes, u64::from(offset), OPTIONS);
        let instructions: Vec<Instruction> = source.ops.iter().map(|_| decoder.decode()).collect();
        let plain = plain(&instructions, source.ops);
        let mut block = Emitter {
            asm: &mut self.asm,
            registers: &mut self.registers,
            sites,
            encoder: Encoder::new(64),
            source,
            places,
            instructions: &instructions,
            plain: &plain,
            in_host: InHost::Nothing,
            known: None,
            ways: [None; 2],
        };
        block.emit();
        let ways = block.ways;
        Emitted { code: self.asm.finish(), ways }
    }
}

pub(super) struct Emitter<'e> {
    pub asm: &'e mut Asm,
    pub registers: &'e mut Registers,
    pub sites: &'e mut Sites,
    pub encoder: Encoder,
    pub source: &'e Source<'e>,
    pub places: &'e Places<'e>,
    pub instructions: &'e [Instruction],
    /// Which of them are translated, and who sees the flags that they leave.
    pub plain: &'e [Plain],
    /// What the host's flags hold of the guest's.
    pub in_host: InHost,
    /// What the operands in [`crate::core::native::Native`] are of, if that is known here: operation and width.
    pub known: Option<(Operation, u8)>,
    /// See [`Emitted`].
    pub ways: Ways,
}

impl Emitter<'_> {
    fn emit(&mut self) {
        let full = self.begin();
        let last = self.source.ops.len() - 1;
        let mut ended = false;
        let mut done = 0;
        for n in 0..=last {
            if n < done {
                continue;
            }
            done = n + self.stack_run(n);
            if n < done {
                continue;
            }
            let i = self.instructions[n];
            if n == last && lower(&i).1 == Kind::Ends {
                self.end(&i, n);
                ended = true;
            } else if self.plain[n].translated {
                self.plain(&i, n);
            } else if can_be_vector(&i, &self.source.ops[n]) {
                self.vector(&i, n);
            } else if !self.special(&i, n) {
                self.handler(n);
            }
            self.registers.unpin();
        }
        if !ended {
            // The bound of a block, or the end of its page.
            self.registers.save(self.asm);
            let next = u32::from(self.source.ops[last].off) + u32::from(self.source.ops[last].len);
            self.go_on(next as i32, 0, None);
        }
        self.asm.bind(full);
        self.asm.call_to(self.places.routines.full);
        self.site(FULL);
        for (way, n) in self.ways.into_iter().zip(WAYS) {
            if let Some((_, label)) = way.and_then(|way| way.open) {
                self.asm.bind(label);
                self.asm.call_to(self.places.routines.unlinked);
                self.site(n);
            }
        }
    }

    /// Whether the block fits before the next stop.
    fn begin(&mut self) -> Label {
        let full = self.asm.label();
        let count = self.source.ops.len() as i8;
        self.asm.alu_memory_imm(Alu::Sub, R15, at_slot(slot::LEFT), count);
        self.asm.jump_if(BELOW, full);
        self.other_page();
        self.arrive();
        full
    }

    /// Whether the page that an instruction goes on on is the one it was translated with: the way here tells of the first one
    /// only.
    fn other_page(&mut self) {
        if let Some(second) = self.source.expected.second {
            self.asm.load(R13, R15, at_slot(slot::PAGE));
            self.asm.add_to(R13, R13, 4096);
            self.asm.set(R11, second);
            self.asm.call_to(self.places.routines.second);
            self.site(0);
        }
    }

    /// Tell where the branch before this block was, if edges are asked for. No register is held yet.
    fn arrive(&mut self) {
        if self.source.expected.named != 0 {
            let nowhere = self.asm.label();
            self.asm.load(R10, R15, at_slot(slot::FROM));
            self.asm.test(3, R10, R10);
            self.asm.jump_short_if(EQUAL, nowhere);
            self.asm.set(R11, self.source.expected.named);
            self.asm.call_to(self.places.routines.edge);
            self.asm.bind(nowhere);
        }
    }

    /// The routine that was just called may find that instruction `n` is the interpreter's.
    pub(super) fn site(&mut self, n: usize) {
        let at = (self.asm.here() - self.places.base) as u32;
        self.sites.add(at, self.source.id, n, self.registers);
    }
    /// The number of a site for a jump by instruction `n`, if it is one. All registers are saved.
    pub(super) fn site_of_jump(&mut self, n: Option<usize>) -> u32 {
        n.map_or(NO_SITE, |n| {
            let number = self.sites.next();
            self.site(n);
            number
        })
    }
    /// Leave before instruction `n`, which the interpreter executes.
    pub(super) fn interpret(&mut self, n: usize) {
        self.registers.save(self.asm);
        self.asm.set(R11, leave_word(INTERPRET, self.source.id, n as u32));
        self.asm.jump_to(self.places.routines.leave);
    }
}

/// The word that tells why translated code was left.
fn leave_word(why: u8, id: u32, n: u32) -> u64 {
    u64::from(why) | u64::from(id) << 8 | u64::from(n) << 40
}

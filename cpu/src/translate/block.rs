//! Translation of one block: guest instructions to host code, one after the other.
//!
//! For each instruction, the host code either contains a translation or calls the instruction's handler (its function
//! in the interpreter). The interpreter handles exceptional cases, such as an access to a device: the translated code
//! leaves the block with the state before the instruction, and the interpreter executes the instruction and the rest of
//! the block. Only the interpreter therefore deals with exceptions, devices, and stores to code and page tables.

use iced_x86::{Decoder, Encoder, Instruction};

use super::asm::{Alu, Asm, BELOW, EQUAL, Label, R10, R11, R13, R15};
use super::avx::can_be_avx;
use super::choice::{can_be_arithmetic, can_be_bmi, can_be_partial, plain};
use super::emitter::{Emitter, InHost, Places, Source, Ways};
use super::fma::can_be_fma;
use super::frame::slot as at_slot;
use super::registers::Registers;
use super::sites::{FULL, Sites, WAYS};
use super::vectors::can_be_vector;
use crate::decode::lower::lower;
use crate::op::{Kind, slot};

/// Translator of single blocks. It keeps its buffers for the next block.
#[derive(Debug, Default)]
pub(super) struct Translation {
    asm: Asm,
    registers: Registers,
}

/// Code of a translated block, before it is copied to its address.
#[derive(Debug)]
pub(super) struct Emitted<'e> {
    /// The code. It is valid only at the address [`Places::next`].
    pub code: &'e [u8],
    /// References of the code to other blocks, as jumps or return addresses.
    pub ways: Ways,
}

impl Translation {
    /// Translates one block.
    pub(super) fn translate(
        &mut self,
        source: &Source<'_>,
        places: &Places<'_>,
        sites: &mut Sites,
    ) -> Emitted<'_> {
        self.asm.clear(places.next);
        self.registers.clear();
        let offset = source.ops[0].off;
        let mut decoder =
            Decoder::with_ip(64, source.bytes, u64::from(offset), source.model.decoder_options());
        let instructions: Vec<Instruction> = source.ops.iter().map(|_| decoder.decode()).collect();
        let plain = plain(&instructions, source.ops, source.model);
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
            slow_paths: Vec::new(),
        };
        block.emit();
        let ways = block.ways;
        Emitted { code: self.asm.finish(), ways }
    }
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
            if n == last && lower(&i, self.source.model).1 == Kind::Ends {
                self.end(&i, n);
                ended = true;
            } else if can_be_arithmetic(&i, &self.source.ops[n]) {
                self.arithmetic(&i, n);
            } else if can_be_partial(&i, &self.source.ops[n]) {
                self.partial(&i, n);
            } else if can_be_bmi(&i, &self.source.ops[n], self.source.model) {
                self.bmi(&i, n);
            } else if self.plain[n].translated {
                self.plain(&i, n);
            } else if can_be_vector(&i, &self.source.ops[n], self.source.model) {
                self.vector(&i, n);
            } else if can_be_avx(&i, &self.source.ops[n], self.source.model) {
                self.avx(&i, n);
            } else if can_be_fma(&i, &self.source.ops[n], self.source.model) {
                self.fma(&i, n);
            } else if !self.special(&i, n) {
                self.handler(n);
            }
            self.registers.unpin();
        }
        if !ended {
            // The block ends at its maximum length or at the end of its page.
            self.registers.save(self.asm);
            let next = u32::from(self.source.ops[last].off) + u32::from(self.source.ops[last].len);
            self.go_on(next as i32, 0, None);
        }
        self.slow_paths();
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

    /// Emits the start of a block: it subtracts the block's length from the number of instructions left before the
    /// limit (the count at which the run stops), checks the second page of a block that has one, and records the edge
    /// to the block. Returns the label of the code that runs if the limit lies within the block.
    fn begin(&mut self) -> Label {
        let full = self.asm.label();
        let count = self.source.ops.len() as i8;
        self.asm.alu_memory_imm(Alu::Sub, R15, at_slot(slot::LEFT), count);
        self.asm.jump_if(BELOW, full);
        self.other_page();
        self.arrive();
        full
    }

    /// Emits the check that the second page of a straddling instruction has the same contents as at translation. The
    /// lookup of the block has checked only the first page.
    fn other_page(&mut self) {
        if let Some(second) = self.source.expected.second {
            self.asm.load(R13, R15, at_slot(slot::PAGE));
            self.asm.add_to(R13, R13, 4096);
            self.asm.set(R11, second);
            self.asm.call_to(self.places.routines.second);
            self.site(0);
        }
    }

    /// Emits code that records the edge (executed jump) that led to this block, if edges are recorded. At this point no
    /// guest register is in a host register of the pool (`registers::POOL`).
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
}

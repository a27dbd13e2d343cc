//! Translation of one trace: guest instructions to host code, one after the other.
//!
//! For each instruction, the host code either contains a translation or calls the instruction's handler (its function
//! in the interpreter). The interpreter handles exceptional cases, such as an access to a device: the translated code
//! leaves the block with the state before the instruction, and the interpreter executes the instruction and the rest of
//! the block. Only the interpreter therefore deals with exceptions, devices, and stores to code and page tables.

use iced_x86::{Decoder, Encoder, Instruction};

use super::asm::{Alu, Asm, BELOW, Label, R11, R13, R15};
use super::avx::can_be_avx;
use super::checks::Checks;
use super::choice::{can_be_arithmetic, can_be_bmi, can_be_partial, plain};
use super::emitter::{Behind, Emitter, InHost, Part, Places, Source, Way};
use super::fma::can_be_fma;
use super::frame::slot as at_slot;
use super::memory::REDIRECT_BYTES;
use super::registers::Registers;
use super::sites::{FULL, Site, Sites, WAYS};
use super::vectors::can_be_vector;
use crate::decode::lower::lower;
use crate::op::{Kind, Op, slot};

/// Translator of single traces. It keeps its buffers for the next trace.
#[derive(Debug, Default)]
pub(super) struct Translation {
    asm: Asm,
    registers: Registers,
}

/// Code of a translated trace, before it is copied to its address.
#[derive(Debug)]
pub(super) struct Emitted<'e> {
    /// The code. It is valid only at the address [`Places::next`].
    pub code: &'e [u8],
    /// References of the code to other blocks, as jumps or return addresses.
    pub ways: Vec<Way>,
}

impl Translation {
    /// Translates one trace.
    pub(super) fn translate(
        &mut self,
        source: &Source<'_>,
        places: &Places<'_>,
        sites: &mut Sites,
        checks: &mut Checks,
    ) -> Emitted<'_> {
        self.asm.clear(places.next);
        self.registers.clear();
        let mut ops: Vec<Op> = Vec::new();
        let mut instructions: Vec<Instruction> = Vec::new();
        for part in source.parts {
            let offset = u64::from(part.ops[0].off);
            let mut decoder = Decoder::with_ip(64, part.bytes, offset, source.model.decoder_options());
            ops.extend_from_slice(part.ops);
            instructions.extend(part.ops.iter().map(|_| decoder.decode()));
        }
        let plain = plain(&instructions, &ops, source.model);
        let mut trace = Emitter {
            asm: &mut self.asm,
            registers: &mut self.registers,
            sites,
            checks,
            encoder: Encoder::new(64),
            source,
            places,
            ops: &ops,
            instructions: &instructions,
            plain: &plain,
            in_host: InHost::Nothing,
            known: None,
            pending: None,
            part: 0,
            first: 0,
            charged: ops.len(),
            ways: Vec::new(),
            side_exits: Vec::new(),
            slow_paths: Vec::new(),
            far_paths: Vec::new(),
            unrecorded: Vec::new(),
        };
        trace.emit();
        let ways = trace.ways;
        Emitted { code: self.asm.finish(), ways }
    }
}

impl Emitter<'_> {
    fn emit(&mut self) {
        let (full, behind) = self.begin();
        let parts = self.source.parts;
        for (part, next) in parts.iter().zip(parts[1..].iter().map(Some).chain([None])) {
            self.instructions_of(part, next.map(|next| next.place));
            if next.is_some() {
                self.part += 1;
                self.first += part.ops.len();
                self.charged -= part.ops.len();
            }
        }
        self.slow_paths();
        self.side_exits();
        self.far_paths();
        self.unrecorded();
        if let Some(behind) = behind {
            self.arrived(behind);
        }
        self.asm.bind(full);
        self.asm.call_to(self.places.routines.full);
        self.leave_site(0, FULL);
        for way in std::mem::take(&mut self.ways) {
            if let Some((_, label)) = way.open {
                self.asm.bind(label);
                self.asm.call_to(self.places.routines.unlinked);
                self.leave_site(way.part, WAYS[way.number]);
            }
            self.ways.push(way);
        }
    }
    /// Adds a site at the end of the code, at which a block is left although no instruction of it is in progress.
    fn leave_site(&mut self, part: usize, n: usize) {
        self.add_site(Site::new(self.source.id + part as u32, n, self.registers));
    }
    /// Emits the current block. `next` is the place of the block with which the trace goes on, if there is one.
    fn instructions_of(&mut self, part: &Part<'_>, next: Option<u64>) {
        let last = self.first + part.ops.len() - 1;
        let mut done = self.first;
        for n in self.first..=last {
            if n < done {
                continue;
            }
            let i = self.instructions[n];
            let ends = n == last && lower(&i, self.source.model).1 == Kind::Ends;
            match next {
                Some(next) if ends => return self.go_through(&i, n, next),
                _ => self.before(n),
            }
            done = n + self.stack_run(n, last);
            if n < done {
                continue;
            }
            if ends {
                return self.end(&i, n);
            }
            if can_be_arithmetic(&i, &self.ops[n]) {
                self.arithmetic(&i, n);
            } else if can_be_partial(&i, &self.ops[n]) {
                self.partial(&i, n);
            } else if can_be_bmi(&i, &self.ops[n], self.source.model) {
                self.bmi(&i, n);
            } else if self.plain[n].translated {
                self.plain(&i, n);
            } else if can_be_vector(&i, &self.ops[n], self.source.model) {
                self.vector(&i, n);
            } else if can_be_avx(&i, &self.ops[n], self.source.model) {
                self.avx(&i, n);
            } else if can_be_fma(&i, &self.ops[n], self.source.model) {
                self.fma(&i, n);
            } else if !self.special(&i, n) {
                self.handler(n);
            }
            self.registers.unpin();
        }
        if next.is_none() {
            // The block ends at its maximum length or at the end of its page.
            self.store_pending();
            self.registers.save(self.asm);
            let next = i32::from(self.ops[last].off) + i32::from(self.ops[last].len);
            self.go_on(next, 0, None);
        }
    }

    /// Emits the start of a trace: it subtracts the trace's length from the number of instructions left before the
    /// limit (the count at which the run stops), checks the second page of a block that has one, and records the edge
    /// to the first block. Returns the label of the code that runs if the limit lies within the trace, and the positions of
    /// code for edges behind the trace.
    fn begin(&mut self) -> (Label, Option<Behind>) {
        let full = self.asm.label();
        let count = self.ops.len() as i8;
        self.asm.alu_memory_imm(Alu::Sub, R15, at_slot(slot::LEFT), count);
        // A jump can replace this instruction, and a trace can lead to the next one.
        assert_eq!(self.asm.here(), self.places.next + REDIRECT_BYTES as u64);
        self.asm.jump_if(BELOW, full);
        self.other_page();
        let behind = self.arrive();
        (full, behind)
    }

    /// Emits the check that the second page of a straddling instruction has the same contents as at translation. The
    /// lookup of the block has checked only the first page.
    fn other_page(&mut self) {
        if let Some(second) = self.block().expected.second {
            self.asm.load(R13, R15, at_slot(slot::PAGE));
            self.asm.add_to(R13, R13, 4096);
            self.asm.set(R11, second);
            self.asm.call_to(self.places.routines.second);
            self.site(0);
        }
    }
}

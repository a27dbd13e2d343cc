//! Runs of pushes or pops, as at the start and end of functions: one TLB lookup serves the whole run.
//!
//! The lookup checks the first and the last byte, so it covers the run if all words are on one page. If neither the
//! lookup nor a page walk yields the host address, the interpreter executes the instructions one by one.

use iced_x86::{Instruction, Mnemonic};

use super::asm::R13;
use super::emitter::Emitter;
use super::registers::GUEST_RSP;
use super::routines::Access;
use crate::op::operand::{gpr, is_gpr, is_immediate};

/// Maximum number of pushes or pops that share one TLB lookup.
const STACK_WORDS_MAX: usize = 8;

impl Emitter<'_> {
    /// Emits a run of pushes or pops from instruction `n` on. The run ends with instruction `last` at the latest. Returns
    /// the number of instructions, or 0 if there are fewer than two.
    pub(super) fn stack_run(&mut self, n: usize, last: usize) -> usize {
        let run = |belongs: fn(&Instruction) -> bool| {
            self.instructions[n..=last].iter().take(STACK_WORDS_MAX).take_while(|i| belongs(i)).count()
        };
        match (run(is_push), run(is_pop)) {
            (words @ 2.., _) => self.pushes(n, words),
            (_, words @ 2..) => self.pops(n, words),
            _ => 0,
        }
    }
    fn pushes(&mut self, n: usize, words: usize) -> usize {
        let bytes = 8 * words as i32;
        let sp = self.registers.get(self.asm, GUEST_RSP, true);
        self.asm.add_to(R13, sp, -bytes);
        self.check_stack(words, true, n);
        self.asm.add_to(sp, sp, -bytes);
        self.registers.wrote(GUEST_RSP);
        for (k, i) in self.instructions[n..n + words].iter().enumerate() {
            let at = bytes - 8 * (k as i32 + 1);
            if is_immediate(i, 0) {
                self.asm.store_imm(R13, at, i.immediate(0) as i64 as i32);
            } else {
                let host = self.registers.get(self.asm, gpr(i.op0_register()), true);
                self.asm.store(R13, at, host);
            }
            self.registers.unpin();
        }
        words
    }
    fn pops(&mut self, n: usize, words: usize) -> usize {
        let sp = self.registers.get(self.asm, GUEST_RSP, true);
        self.asm.copy(R13, sp);
        self.check_stack(words, false, n);
        self.asm.add_to(sp, sp, 8 * words as i32);
        self.registers.wrote(GUEST_RSP);
        for (k, i) in self.instructions[n..n + words].iter().enumerate() {
            let dst = gpr(i.op0_register());
            let host = self.registers.get(self.asm, dst, false);
            self.asm.load(host, R13, 8 * k as i32);
            self.registers.wrote(dst);
            self.registers.unpin();
        }
        words
    }
    /// Emits the conversion of the linear address in R13 to a host address, for `words` words. If neither the TLB nor a
    /// page walk yields the host address, the interpreter executes the block from instruction `n` on.
    fn check_stack(&mut self, words: usize, write: bool, n: usize) {
        self.look_up(Access { size: 8 * words as u8, aligned: false, write }, n);
    }
}

/// True for a push of an immediate or a register. The stack pointer is excluded, because its value changes within a
/// run.
fn is_push(i: &Instruction) -> bool {
    let value = is_immediate(i, 0) || is_gpr(i, 0) && gpr(i.op0_register()) != GUEST_RSP;
    i.mnemonic() == Mnemonic::Push && i.stack_pointer_increment() == -8 && value
}

fn is_pop(i: &Instruction) -> bool {
    let other = is_gpr(i, 0) && gpr(i.op0_register()) != GUEST_RSP;
    i.mnemonic() == Mnemonic::Pop && i.stack_pointer_increment() == 8 && other
}

//! Runs of pushes and of pops, as functions begin and end: one look into the TLB for all of them.
//!
//! If they all lie on one page, what the first one finds holds for the others. If not, or if there is anything else to be said
//! against the first, the interpreter executes them one by one.

use iced_x86::{Instruction, Mnemonic};

use super::asm::R13;
use super::block::{Emitter, GUEST_RSP, InHost};
use super::routines::STACK_WORDS_MAX;
use crate::op::operand::{gpr, is_gpr, is_immediate};

impl Emitter<'_> {
    /// Translate the pushes or pops from instruction `n` on at once. How many there were; 0 where it is not worth it.
    pub(super) fn stack_run(&mut self, n: usize) -> usize {
        let run = |belongs: fn(&Instruction) -> bool| {
            self.instructions[n..].iter().take(STACK_WORDS_MAX).take_while(|i| belongs(i)).count()
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
    /// R13 = the host address of so many words from the linear address in R13 on, or leave to the interpreter.
    fn check_stack(&mut self, words: usize, write: bool, n: usize) {
        self.asm.call_to(self.places.routines.stack[usize::from(write)][words]);
        self.site(n);
        self.in_host = InHost::Nothing;
    }
}

/// The push of something other than the stack pointer, which changes in between.
fn is_push(i: &Instruction) -> bool {
    let value = is_immediate(i, 0) || is_gpr(i, 0) && gpr(i.op0_register()) != GUEST_RSP;
    i.mnemonic() == Mnemonic::Push && i.stack_pointer_increment() == -8 && value
}

fn is_pop(i: &Instruction) -> bool {
    let other = is_gpr(i, 0) && gpr(i.op0_register()) != GUEST_RSP;
    i.mnemonic() == Mnemonic::Pop && i.stack_pointer_increment() == 8 && other
}

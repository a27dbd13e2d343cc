//! Memory operands: their addresses, and the look into the software TLB that makes host addresses of them.

use super::asm::{Alu, NOT_EQUAL, R11, R13, R14, R15};
use super::block::{Emitter, InHost, TABLE};
use super::registers::slot as at_slot;
use crate::mem::tlb;
use crate::op::{Op, slot};

impl Emitter<'_> {
    /// R13 = the linear address of a memory operand, segment base included.
    pub(super) fn address(&mut self, op: &Op) {
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
    pub(super) fn entry(&mut self) {
        self.asm.copy(R14, R13);
        self.asm.shift_right(R14, 12 - tlb::ENTRY_SHIFT);
        self.asm.and32(R14, (self.source.tlb_mask << tlb::ENTRY_SHIFT) as u32);
        self.asm.alu_memory(Alu::Add, R14, R15, TABLE);
        self.in_host = InHost::Nothing;
    }
    /// R13 = the host address of so many bytes at the linear address in R13, or leave to the interpreter.
    pub(super) fn check(&mut self, size: usize, write: bool, n: usize) {
        self.entry();
        self.asm.add_to(R11, R13, size as i32 - 1);
        self.asm.alu_imm(Alu::And, R11, -4096);
        self.asm.alu_memory(Alu::Cmp, R11, R14, if write { tlb::WRITE } else { tlb::READ } as i32);
        let miss = self.otherwise(n);
        self.asm.jump_if(NOT_EQUAL, miss);
        self.asm.alu_memory(Alu::Add, R13, R14, tlb::ADDEND as i32);
    }
}

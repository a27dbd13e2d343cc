//! Memory operands: their linear addresses, and the conversion to host addresses.

use super::asm::{Alu, R13, R15};
use super::emitter::{Emitter, InHost};
use super::frame::slot as at_slot;
use super::routines::Access;
use crate::op::{FAR_PAGE, Op, slot};

impl Emitter<'_> {
    /// R13 = the linear address of a memory operand, including the segment base.
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
                let base = if op.base == slot::PAGE_FAR { slot::PAGE } else { op.base };
                self.asm.load(R13, R15, at_slot(base));
                if op.base == slot::PAGE_FAR {
                    self.asm.add_to(R13, R13, FAR_PAGE as i32);
                }
                self.asm.add_to(R13, R13, op.disp);
            }
        }
        if op.seg != slot::ZERO {
            self.asm.alu_memory(Alu::Add, R13, R15, at_slot(op.seg));
            self.in_host = InHost::Nothing;
        }
    }
    /// Emits the conversion of the linear address in R13 to a host address, for an access of `size` bytes (a power of
    /// two). If neither the TLB nor a page walk yields the host address, the interpreter executes instruction `n`.
    pub(super) fn check(&mut self, size: usize, write: bool, n: usize) {
        self.look_up(Access { size: size as u8, aligned: false, write }, n);
    }
    /// Like [`Emitter::check`], for 16 or 32 bytes at an address that must be a multiple of the size.
    pub(super) fn check_aligned(&mut self, size: usize, write: bool, n: usize) {
        self.look_up(Access { size: size as u8, aligned: true, write }, n);
    }
}

//! Translates BMI1, BMI2 and LZCNT instructions. The host executes them re-encoded on other registers.
//!
//! The manual leaves some of their flags undefined. The interpreter clears these flags, so the stored flags of the host
//! come with a mask ([`lazy_flags::mask_of_host`](super::lazy_flags::mask_of_host)).

use iced_x86::{Instruction, Mnemonic, OpKind};

use super::emitter::{Emitter, InHost};
use super::instruction::{named, on_r13, without_prefixes};
use super::lazy_flags::Operation;
use crate::op::operand::{gpr, is_memory};

/// Returns the guest's flags that the host's flags hold after the instruction, and the binary logarithm that selects
/// their mask. Returns `None` if the instruction leaves all flags unchanged.
fn flags(i: &Instruction) -> Option<(InHost, u8)> {
    use Mnemonic::*;
    match i.mnemonic() {
        Andn | Blsi | Blsmsk | Blsr | Bzhi => Some((InHost::AllButParity, 2)),
        Bextr | Lzcnt | Tzcnt => Some((InHost::CarryAndZero, 1)),
        _ => None,
    }
}

impl Emitter<'_> {
    /// Emits an instruction of this module.
    pub(super) fn bmi(&mut self, i: &Instruction, n: usize) {
        let mut out = *i;
        if (0..i.op_count()).any(|k| is_memory(i, k)) {
            self.address(&self.ops[n]);
            self.check(i.memory_size().size(), false, n);
            // The address is in R13 now. Without its registers, the instruction needs at most three.
            self.registers.unpin();
            on_r13(&mut out);
        }
        let results = if i.mnemonic() == Mnemonic::Mulx { 2 } else { 1 };
        // The operands that are only written come last: one of them may be a source as well.
        for k in (0..i.op_count()).rev().filter(|&k| i.op_kind(k) == OpKind::Register) {
            let register = i.op_register(k);
            let host = self.registers.get(self.asm, gpr(register), k >= results);
            out.set_op_register(k, named(host, register.size()));
        }
        without_prefixes(&mut out);
        if !self.encode(&out) {
            return self.handler(n);
        }
        self.emit_encoded();
        for k in 0..results {
            self.registers.wrote(gpr(i.op_register(k)));
        }
        if let Some((in_host, mask)) = flags(i) {
            self.in_host = in_host;
            if self.plain[n].seen {
                self.keep_host_flags(false);
                self.keep_kind(Operation::Host, mask);
            } else {
                self.known = None;
            }
        }
    }
}

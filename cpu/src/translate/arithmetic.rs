//! Translates integer instructions that need more than other registers: they use registers that they do not name,
//! leave flags undefined or unchanged, or can raise #DE.
//!
//! The guest's flags never come from a host flag that the manual leaves undefined.

use iced_x86::{Instruction, Mnemonic, OpKind};

use super::asm::{ABOVE, Alu, BELOW, EQUAL, Host, NOT_EQUAL, R10, R11, R13, R15, RAX, RCX, RDX};
use super::choice::{is_second_byte, writes_whole};
use super::emitter::{Emitter, InHost};
use super::frame::slot as at_slot;
use super::instruction::{named, on_r13};
use super::lazy_flags::{Operation, kind};
use crate::op::operand::{gpr, is_memory, width};
use crate::op::slot;

impl Emitter<'_> {
    /// Emits an instruction of this module.
    pub(super) fn arithmetic(&mut self, i: &Instruction, n: usize) {
        if (0..i.op_count()).any(|k| is_memory(i, k)) {
            self.address(&self.ops[n]);
            self.check(i.memory_size().size(), false, n);
        }
        match i.mnemonic() {
            Mnemonic::Mul | Mnemonic::Imul => self.product(i, n),
            Mnemonic::Div => self.division(i, n),
            Mnemonic::Idiv => self.signed_division(i, n),
            Mnemonic::Bsf | Mnemonic::Bsr => self.bit_scan(i, n),
            Mnemonic::Popcnt => self.population(i, n),
            _ => self.shift_by_cl(i, n),
        }
    }
    /// Emits MUL or IMUL. The host's CF and OF are the guest's. The guest's other flags follow from the product.
    fn product(&mut self, i: &Instruction, n: usize) {
        let mut out = *i;
        for k in (0..i.op_count()).filter(|&k| i.op_kind(k) == OpKind::Register) {
            let register = i.op_register(k);
            let load = !(k == 0 && writes_whole(i));
            let host = self.registers.get(self.asm, gpr(register) & 15, load);
            if !is_second_byte(register) {
                out.set_op_register(k, named(host, register.size()));
            }
        }
        if (0..i.op_count()).any(|k| is_memory(i, k)) {
            on_r13(&mut out);
        }
        if !self.encode(&out) {
            return self.handler(n);
        }
        self.emit_encoded();
        let low = if i.op_count() == 1 { 0 } else { gpr(i.op0_register()) };
        let host = self.registers.get(self.asm, low, true);
        self.registers.wrote(low);
        self.in_host = InHost::CarryAndOverflow;
        self.known = None;
        if self.plain[n].seen {
            self.asm.store(R15, at_slot(slot::X), host);
            self.asm.store_condition(R15, at_slot(slot::Y), BELOW);
            self.keep_kind(Operation::Product, width(i, 0).trailing_zeros() as u8);
        }
    }
    /// Emits DIV. If the quotient does not fit, or the divisor is 0, the interpreter executes it and raises #DE.
    fn division(&mut self, i: &Instruction, n: usize) {
        let log2 = width(i, 0).trailing_zeros() as u8;
        let divisor = self.value(i, 0);
        self.asm.alu_by_width(Alu::Cmp, log2, RDX, divisor);
        self.unless(BELOW, n);
        self.divide(false, log2, divisor);
    }
    /// Emits IDIV. The interpreter executes it if the divisor is 0 or -1, which may raise #DE, or if the dividend does
    /// not fit into RAX, which is rare.
    fn signed_division(&mut self, i: &Instruction, n: usize) {
        let log2 = width(i, 0).trailing_zeros() as u8;
        let divisor = self.value(i, 0);
        if log2 == 3 {
            self.asm.add_to(R11, divisor, 1);
        } else {
            self.asm.extend32(R11, divisor);
            self.asm.add_to(R11, R11, 1);
        }
        self.asm.alu_imm(Alu::Cmp, R11, 1);
        self.unless(ABOVE, n);
        if log2 == 3 {
            self.asm.copy(R11, RAX);
        } else {
            self.asm.extend32(R11, RAX);
        }
        self.asm.shift_right_signed(R11, 63);
        self.asm.alu_by_width(Alu::Cmp, log2, R11, RDX);
        self.unless(EQUAL, n);
        self.divide(true, log2, divisor);
    }
    fn divide(&mut self, signed: bool, log2: u8, divisor: Host) {
        self.asm.divide(signed, log2, divisor);
        // The guest's flags are unchanged. They are stored, because the division could have left the block.
        self.in_host = InHost::Nothing;
    }
    /// Emits code that leaves instruction `n` to the interpreter unless condition `cc` holds.
    fn unless(&mut self, cc: u8, n: usize) {
        let usual = self.asm.label();
        self.asm.jump_short_if(cc, usual);
        self.asm.call_to(self.places.routines.interpret);
        self.site(n);
        self.asm.bind(usual);
    }
    /// Emits BSF or BSR. If the source is zero, the whole destination register keeps its value. The flags are those of
    /// a logical operation whose result is the source, zero-extended.
    fn bit_scan(&mut self, i: &Instruction, n: usize) {
        self.zero_extended(i);
        let dst = gpr(i.op0_register());
        let host = self.registers.get(self.asm, dst, true);
        self.asm.bit_scan(i.mnemonic() == Mnemonic::Bsr, R11, R10);
        self.asm.test(3, R10, R10);
        self.asm.copy_if(NOT_EQUAL, host, R11);
        self.registers.wrote(dst);
        self.in_host = InHost::All;
        if self.plain[n].seen {
            self.asm.store(R15, at_slot(slot::X), R10);
            self.keep_kind(Operation::Logic, 3);
        } else {
            self.known = None;
        }
    }
    /// Emits POPCNT. The manual defines all flags after it, so the host's are the guest's.
    fn population(&mut self, i: &Instruction, n: usize) {
        self.zero_extended(i);
        let dst = gpr(i.op0_register());
        let host = self.registers.get(self.asm, dst, false);
        self.asm.count_ones(host, R10);
        self.registers.wrote(dst);
        self.in_host = InHost::All;
        if self.plain[n].seen {
            self.keep_host_flags(false);
            self.keep_kind(Operation::Host, 3);
        } else {
            self.known = None;
        }
    }
    /// Emits a shift by CL. A masked count of zero leaves the stored operands of the flags as they are.
    fn shift_by_cl(&mut self, i: &Instruction, n: usize) {
        let bytes = width(i, 0);
        let Some((dst, host)) = self.encode_on_destination(i) else { return self.handler(n) };
        if self.plain[n].seen {
            let operation = match i.mnemonic() {
                Mnemonic::Shr => Operation::Shr,
                Mnemonic::Sar => Operation::Sar,
                _ => Operation::Shl,
            };
            let none = self.asm.label();
            self.asm.copy32(R10, RCX);
            self.asm.and32(R10, if bytes == 8 { 63 } else { 31 });
            self.asm.jump_short_if(EQUAL, none);
            self.asm.store(R15, at_slot(slot::X), host);
            self.asm.store(R15, at_slot(slot::Y), R10);
            self.asm.store8_imm(R15, at_slot(slot::KIND), kind(operation, bytes.trailing_zeros() as u8));
            self.asm.bind(none);
        }
        self.emit_encoded();
        self.registers.wrote(dst);
        (self.in_host, self.known) = (InHost::Nothing, None);
    }
    /// Returns the register that holds operand `k`, of four or eight bytes. An operand in memory is loaded into R10.
    fn value(&mut self, i: &Instruction, k: u32) -> Host {
        if is_memory(i, k) {
            self.asm.load_by_width(width(i, k).trailing_zeros() as u8, R10, R13, 0);
            return R10;
        }
        self.registers.get(self.asm, gpr(i.op_register(k)), true)
    }
    /// R10 = the second operand, of four or eight bytes, zero-extended.
    fn zero_extended(&mut self, i: &Instruction) {
        let host = self.value(i, 1);
        if host != R10 && width(i, 1) == 4 {
            self.asm.copy32(R10, host);
        } else if host != R10 {
            self.asm.copy(R10, host);
        }
    }
}

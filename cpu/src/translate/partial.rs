//! Translates instructions that change only CF (BT, BTS, BTR, BTC), or only CF and OF (ROL, ROR).
//!
//! The operands stored for the other flags stay as they are. The new CF and OF are stored beside them
//! ([`super::lazy_flags`]).

use iced_x86::{Instruction, Mnemonic, OpKind};

use super::asm::{Alu, BELOW, EQUAL, Host, OVERFLOW, R10, R11, R13, R15, RCX};
use super::emitter::{Emitter, InHost};
use super::frame::slot as at_slot;
use super::instruction::{named, on_r13, without_prefixes};
use super::lazy_flags::{CARRY_BYTE, OVERFLOW_BYTE, OWN_CARRY, OWN_OVERFLOW};
use crate::op::operand::{gpr, is_gpr, is_immediate, is_memory, width};
use crate::op::slot;

impl Emitter<'_> {
    /// Emits an instruction of this module.
    pub(super) fn partial(&mut self, i: &Instruction, n: usize) {
        match i.mnemonic() {
            Mnemonic::Rol | Mnemonic::Ror => self.rotation(i, n),
            _ => self.bit_test(i, n),
        }
    }
    /// Emits ROL or ROR of a register. A count of zero in CL leaves the flags as they are.
    fn rotation(&mut self, i: &Instruction, n: usize) {
        let bytes = width(i, 0);
        let by_cl = !is_immediate(i, 1);
        let Some((dst, host)) = self.encode_on_destination(i) else { return self.handler(n) };
        let seen = self.plain[n].seen;
        if seen && by_cl {
            // The destination may be RCX.
            self.asm.copy32(R11, RCX);
        }
        self.emit_encoded();
        self.registers.wrote(dst);
        (self.in_host, self.known) = (InHost::Nothing, None);
        if !seen {
            return;
        }
        let none = self.asm.label();
        if by_cl {
            self.asm.test_byte(R11, if bytes == 8 { 63 } else { 31 });
            self.asm.jump_short_if(EQUAL, none);
        }
        self.set_kind_bits(OWN_CARRY | OWN_OVERFLOW);
        // For every count, the guest's CF and OF are those of a rotation by one with the same result. Rotating the
        // result back by one sets them, in a way that the manual defines.
        self.asm.copy(R10, host);
        self.asm.rotate_by_one(i.mnemonic() == Mnemonic::Ror, bytes.trailing_zeros() as u8, R10);
        self.keep_carry();
        self.asm.store_condition(R15, at_slot(slot::KIND) + i32::from(OVERFLOW_BYTE), OVERFLOW);
        self.asm.bind(none);
        if !by_cl {
            self.in_host = InHost::CarryAndOverflow;
        }
    }
    /// Emits BT, BTS, BTR or BTC.
    fn bit_test(&mut self, i: &Instruction, n: usize) {
        let bytes = width(i, 0);
        let stores = i.mnemonic() != Mnemonic::Bt;
        let number = is_gpr(i, 1).then(|| self.registers.get(self.asm, gpr(i.op1_register()), true));
        let mut out = *i;
        if let Some(number) = number {
            out.set_op1_register(named(number, bytes));
        }
        if is_memory(i, 0) {
            self.address(&self.ops[n]);
            if let Some(number) = number {
                self.step_to_bit(bytes, number);
            }
            self.check(bytes, stores, n);
            if number.is_some() {
                // The host's form with a register and memory would add the step again.
                self.asm.load_by_width(bytes.trailing_zeros() as u8, R10, R13, 0);
                out.set_op0_kind(OpKind::Register);
                out.set_op0_register(named(R10, bytes));
            } else {
                on_r13(&mut out);
            }
        } else {
            let host = self.registers.get(self.asm, gpr(i.op0_register()), true);
            out.set_op0_register(named(host, bytes));
        }
        without_prefixes(&mut out);
        if !self.encode(&out) {
            return self.handler(n);
        }
        let seen = self.plain[n].seen;
        if seen {
            self.set_kind_bits(OWN_CARRY);
        }
        self.emit_encoded();
        if seen {
            self.keep_carry();
        }
        (self.in_host, self.known) = (InHost::Carry, None);
        if stores && is_gpr(i, 0) {
            self.registers.wrote(gpr(i.op0_register()));
        } else if stores && number.is_some() {
            match bytes {
                4 => self.asm.store32(R13, 0, R10),
                _ => self.asm.store(R13, 0, R10),
            }
        }
    }
    /// Emits code that adds to R13 the distance from a memory operand to the operand of the same size that has the bit.
    /// The bit's number is signed, and counts from the start of the memory operand.
    fn step_to_bit(&mut self, bytes: usize, number: Host) {
        if bytes == 4 {
            self.asm.extend32(R10, number);
        } else {
            self.asm.copy(R10, number);
        }
        let log2 = bytes.trailing_zeros() as u8;
        self.asm.shift_right_signed(R10, log2 + 3);
        self.asm.sum(R13, R13, R10, log2, 0);
    }
    /// Emits code that sets bits of the stored kind. Changes the host's flags.
    fn set_kind_bits(&mut self, bits: u8) {
        self.asm.alu8_memory_imm(Alu::Or, R15, at_slot(slot::KIND), bits);
    }
    /// Emits the store of the host's CF beside the stored operands. Changes no flags.
    fn keep_carry(&mut self) {
        self.asm.store_condition(R15, at_slot(slot::KIND) + i32::from(CARRY_BYTE), BELOW);
    }
}

//! Flags within a block: when the host has them, when operands are stored for later, and how the host gets them back.

use iced_x86::{Instruction, Mnemonic};

use super::asm::{Alu, Host, R10, R11, R13, R15};
use super::block::{Emitter, InHost};
use super::frame::slot as at_slot;
use super::lazy::{self, Operation};
use crate::decode::operand::is_immediate;
use crate::flags::bits;
use crate::op::slot;

impl Emitter<'_> {
    /// Have the host's flags be the guest's, as far as a condition looks. Registers keep their values, and R13 as well.
    pub(super) fn need_flags(&mut self, condition: u8) {
        let overflow = matches!(condition, 0 | 1 | 12..=15);
        match (self.in_host, self.known) {
            (InHost::All, _) => return,
            (InHost::AllButOverflow, _) if !overflow => return,
            (_, Some((Operation::Logic, log2))) => {
                self.asm.load(R10, R15, at_slot(slot::X));
                self.asm.test(log2, R10, R10);
            }
            (_, Some((operation @ (Operation::Add | Operation::Sub), log2))) => {
                self.asm.load(R10, R15, at_slot(slot::X));
                self.asm.load(R11, R15, at_slot(slot::Y));
                let alu = if operation == Operation::Add { Alu::Add } else { Alu::Sub };
                self.asm.alu_by_width(alu, log2, R10, R11);
            }
            (_, Some((Operation::Host, _))) => {
                self.asm.load(R10, R15, at_slot(slot::X));
                self.asm.and32(R10, lazy::GUEST_FLAGS);
                self.asm.push(R10);
                self.asm.pop_flags();
            }
            _ => {
                // It preserves general registers only.
                self.registers.vectors.save(self.asm);
                self.registers.vectors.forget();
                self.asm.call_to(self.places.routines.flags);
                // They are where the interpreter has them now.
                self.known = None;
            }
        }
        self.in_host = InHost::All;
    }
    /// Say what the operands are of that were stored.
    pub(super) fn keep_kind(&mut self, operation: Operation, log2: u8) {
        // Storing the same number again would change nothing.
        if self.known != Some((operation, log2)) {
            self.asm.store8_imm(R15, at_slot(slot::KIND), lazy::kind(operation, log2));
        }
        self.known = Some((operation, log2));
    }
    /// Store what an operation's flags will be computed from, before it is done.
    pub(super) fn keep_operands(
        &mut self,
        i: &Instruction,
        operation: Operation,
        log2: u8,
        hosts: &[Option<Host>; 3],
    ) {
        match operation {
            Operation::Host => {}
            Operation::Logic => {
                if i.mnemonic() == Mnemonic::Test {
                    self.keep_test(i, log2, hosts);
                }
            }
            Operation::Sub if i.mnemonic() == Mnemonic::Neg => {
                self.asm.store_imm(R15, at_slot(slot::X), 0);
                let host = self.operand(log2, hosts[0]);
                self.asm.store(R15, at_slot(slot::Y), host);
            }
            _ => {
                let host = self.operand(log2, hosts[0]);
                self.asm.store(R15, at_slot(slot::X), host);
                if is_immediate(i, 1) {
                    self.asm.store_imm(R15, at_slot(slot::Y), i.immediate(1) as i64 as i32);
                } else if operation == Operation::Add || operation == Operation::Sub {
                    let host = self.operand(log2, hosts[1]);
                    self.asm.store(R15, at_slot(slot::Y), host);
                } else {
                    // A shift by one, which has no operand for it.
                    self.asm.store_imm(R15, at_slot(slot::Y), 1);
                }
            }
        }
    }
    /// TEST's result, which it does not keep.
    pub(super) fn keep_test(&mut self, i: &Instruction, log2: u8, hosts: &[Option<Host>; 3]) {
        let host = self.operand(log2, hosts[0]);
        if hosts[0].is_some() && hosts[0] == hosts[1] {
            self.asm.store(R15, at_slot(slot::X), host);
            return;
        }
        self.asm.copy(R10, host);
        if is_immediate(i, 1) {
            self.asm.alu_imm(Alu::And, R10, i.immediate(1) as i64 as i32);
        } else if let Some(other) = hosts[1] {
            self.asm.alu(Alu::And, R10, other);
        }
        self.asm.store(R15, at_slot(slot::X), R10);
    }
    /// The register with an operand; what is in memory comes to R10.
    pub(super) fn operand(&mut self, log2: u8, host: Option<Host>) -> Host {
        host.unwrap_or_else(|| {
            self.asm.load_by_width(log2, R10, R13, 0);
            R10
        })
    }
    pub(super) fn keep_result(&mut self, log2: u8, host: Option<Host>) {
        let host = self.operand(log2, host);
        self.asm.store(R15, at_slot(slot::X), host);
    }
    /// Store the host's flags, which are all the guest's; AF is to be clear where hosts differ in it.
    pub(super) fn keep_host_flags(&mut self, clear_af: bool) {
        self.asm.push_flags();
        self.asm.pop(R10);
        if clear_af {
            self.asm.and32(R10, lazy::GUEST_FLAGS & !(bits::AF as u32));
            self.in_host = InHost::Nothing;
        }
        self.asm.store(R15, at_slot(slot::X), R10);
    }
}

//! Flags within a block: when the host has them, when operands are stored for later, and how the host gets them back.

use iced_x86::{Instruction, Mnemonic};

use super::asm::{Alu, Host, R11, R13, R14, R15, RAX, RDI};
use super::block::{Emitter, InHost, KIND, X, Y};
use super::lazy::{self, Operation};
use crate::decode::operand::is_immediate;

impl Emitter<'_> {
    /// Have the host's flags be the guest's, as far as a condition looks. R13 keeps its value; registers may move.
    pub(super) fn need_flags(&mut self, condition: u8) {
        let overflow = matches!(condition, 0 | 1 | 12..=15);
        match (self.in_host, self.known) {
            (InHost::All, _) => return,
            (InHost::AllButOverflow, _) if !overflow => return,
            (_, Some((Operation::Logic, log2))) => {
                self.asm.load(R14, R15, X);
                self.asm.test(log2, R14, R14);
            }
            (_, Some((operation @ (Operation::Add | Operation::Sub), log2))) => {
                self.asm.load(R14, R15, X);
                self.asm.load(R11, R15, Y);
                let alu = if operation == Operation::Add { Alu::Add } else { Alu::Sub };
                self.asm.alu_by_width(alu, log2, R14, R11);
            }
            _ => {
                self.registers.save(self.asm);
                self.registers.forget();
                self.asm.copy(RDI, R15);
                self.asm.set(RAX, self.places.read_flags);
                self.asm.call(RAX);
                self.asm.push(RAX);
                self.asm.pop_flags();
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
            self.asm.store32_imm(R15, KIND, lazy::kind(operation, log2));
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
            Operation::Logic => {
                if i.mnemonic() == Mnemonic::Test {
                    self.keep_test(i, log2, hosts);
                }
            }
            Operation::Sub if i.mnemonic() == Mnemonic::Neg => {
                self.asm.store_imm(R15, X, 0);
                let host = self.operand(log2, hosts[0]);
                self.asm.store(R15, Y, host);
            }
            _ => {
                let host = self.operand(log2, hosts[0]);
                self.asm.store(R15, X, host);
                if is_immediate(i, 1) {
                    self.asm.store_imm(R15, Y, i.immediate(1) as i64 as i32);
                } else if operation == Operation::Add || operation == Operation::Sub {
                    let host = self.operand(log2, hosts[1]);
                    self.asm.store(R15, Y, host);
                } else {
                    // A shift by one, which has no operand for it.
                    self.asm.store_imm(R15, Y, 1);
                }
            }
        }
    }
    /// TEST's result, which it does not keep.
    pub(super) fn keep_test(&mut self, i: &Instruction, log2: u8, hosts: &[Option<Host>; 3]) {
        let host = self.operand(log2, hosts[0]);
        if hosts[0].is_some() && hosts[0] == hosts[1] {
            self.asm.store(R15, X, host);
            return;
        }
        self.asm.copy(R14, host);
        if is_immediate(i, 1) {
            self.asm.alu_imm(Alu::And, R14, i.immediate(1) as i64 as i32);
        } else if let Some(other) = hosts[1] {
            self.asm.alu(Alu::And, R14, other);
        }
        self.asm.store(R15, X, R14);
    }
    /// The register with an operand; what is in memory comes to R14.
    pub(super) fn operand(&mut self, log2: u8, host: Option<Host>) -> Host {
        host.unwrap_or_else(|| {
            self.asm.load_by_width(log2, R14, R13, 0);
            R14
        })
    }
    pub(super) fn keep_result(&mut self, log2: u8, host: Option<Host>) {
        let host = self.operand(log2, host);
        self.asm.store(R15, X, host);
    }
}

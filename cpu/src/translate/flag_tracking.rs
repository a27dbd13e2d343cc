//! Tracks where the guest's arithmetic flags are at each position in a block: in the host's flags, or as stored
//! operands of lazy flags. Emits the code that computes the flags from the stored operands.

use iced_x86::{ConditionCode, Instruction, Mnemonic};

use super::asm::{Alu, Host, R10, R13, R15};
use super::emitter::{Emitter, InHost};
use super::frame::slot as at_slot;
use super::lazy_flags::{self, Operation, carry_of_host, compute};
use super::registers::GUEST_RSP;
use crate::flags::bits;
use crate::op::operand::{gpr, is_gpr, is_immediate};
use crate::op::slot;

impl Emitter<'_> {
    /// Emits the stores of pending flags, if there are any, so that other code can compute the flags.
    pub(super) fn store_pending(&mut self) {
        if let Some(pending) = self.pending.take() {
            if pending.store(self.asm) {
                self.in_host = InHost::Nothing;
            }
            self.known = Some((pending.operation, pending.log2));
        }
    }
    /// Emits the stores of pending flags if instruction `n` may read them in memory, leave the trace other than by a
    /// lookup, or change the registers in which the operands are.
    pub(super) fn before(&mut self, n: usize) {
        if self
            .pending
            .is_some_and(|pending| self.changes(n).is_none_or(|guests| guests & pending.guests != 0))
        {
            self.store_pending();
        }
    }
    /// Returns the guest registers that instruction `n` changes, or the pushes or pops that begin with it. `None` stands
    /// for all registers, and for an instruction that may leave the trace other than by a lookup.
    fn changes(&self, n: usize) -> Option<u16> {
        let i = &self.instructions[n];
        let written = |i: &Instruction| if is_gpr(i, 0) { 1 << (gpr(i.op0_register()) & 15) } else { 0 };
        match i.mnemonic() {
            Mnemonic::Cmp | Mnemonic::Test if self.plain[n].translated => Some(0),
            Mnemonic::Push => (is_gpr(i, 0) || is_immediate(i, 0)).then_some(1 << GUEST_RSP),
            Mnemonic::Pop if is_gpr(i, 0) => {
                let pops = self.instructions[n..].iter().take_while(|i| i.mnemonic() == Mnemonic::Pop);
                Some(pops.fold(1 << GUEST_RSP, |all, i| all | written(i)))
            }
            Mnemonic::Mov
            | Mnemonic::Movzx
            | Mnemonic::Movsx
            | Mnemonic::Movsxd
            | Mnemonic::Lea
            | Mnemonic::Add
            | Mnemonic::Sub
            | Mnemonic::And
            | Mnemonic::Or
            | Mnemonic::Xor
                if self.plain[n].translated =>
            {
                Some(written(i))
            }
            _ if i.condition_code() != ConditionCode::None && self.plain[n].translated => Some(written(i)),
            Mnemonic::Nop | Mnemonic::Endbr64 => Some(0),
            _ => None,
        }
    }
    /// Makes the host's flags equal the guest's, for all flags that the condition reads. Preserves R13 and the general
    /// registers that hold guest registers.
    pub(super) fn need_flags(&mut self, condition: u8) {
        let overflow = matches!(condition, 0 | 1 | 12..=15);
        let are_there = match self.in_host {
            InHost::All => true,
            InHost::AllButOverflow => !overflow,
            InHost::CarryAndOverflow => condition < 4,
            InHost::Carry => matches!(condition, 2 | 3),
            InHost::CarryAndZero => matches!(condition, 2..=7),
            InHost::AllButParity => !matches!(condition, 10 | 11),
            InHost::Nothing => false,
        };
        if are_there {
            return;
        }
        self.store_pending();
        match self.known {
            Some((operation, log2)) if compute(self.asm, operation, log2) => {}
            _ => self.ask(self.places.routines.flags),
        }
        self.in_host = InHost::All;
    }
    /// Makes the host's CF equal the guest's. The host's other flags are undefined. Preserves R13 and the general
    /// registers that hold guest registers.
    pub(super) fn need_carry(&mut self) {
        if self.in_host != InHost::Nothing {
            return;
        }
        self.store_pending();
        match self.known {
            Some((Operation::Host, _)) => carry_of_host(self.asm),
            Some((operation, log2)) if compute(self.asm, operation, log2) => self.in_host = InHost::All,
            _ => self.ask(self.places.routines.carry),
        }
    }
    /// Emits a call of a routine that computes flags. Used if the operation that set the flags is unknown here.
    fn ask(&mut self, routine: u64) {
        // The routine preserves general registers only.
        self.registers.vectors.save(self.asm);
        self.registers.vectors.forget();
        self.asm.call_to(routine);
        // The routine may have moved the flags to `Core::flags`.
        self.known = None;
    }
    /// Emits the store of the operation and width that belong to the stored operands.
    pub(super) fn keep_kind(&mut self, operation: Operation, log2: u8) {
        // The store is needless if the same operation and width are already stored.
        if self.known != Some((operation, log2)) {
            self.asm.store8_imm(R15, at_slot(slot::KIND), lazy_flags::kind(operation, log2));
        }
        self.known = Some((operation, log2));
    }
    /// Emits the stores of an operation's operands for lazy flags. Must precede the operation.
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
                    // A shift by one has no operand for the count.
                    self.asm.store_imm(R15, at_slot(slot::Y), 1);
                }
            }
        }
    }
    /// Emits the computation and store of TEST's result, which TEST itself discards.
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
    /// Returns the register that holds an operand. An operand in memory is loaded into R10.
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
    /// Emits the store of the host's flags, all of which must be the guest's. With `clear_af`, the stored AF is 0,
    /// because hosts differ in AF.
    pub(super) fn keep_host_flags(&mut self, clear_af: bool) {
        self.asm.push_flags();
        self.asm.pop(R10);
        if clear_af {
            self.asm.and32(R10, lazy_flags::GUEST_FLAGS & !(bits::AF as u32));
            self.in_host = InHost::Nothing;
        }
        self.asm.store(R15, at_slot(slot::X), R10);
    }
}

//! Pending flags: in a trace, the operands from which flags could be computed are usually overwritten by the next
//! operation before anything reads them. As long as they are in host registers, the trace stores them only where it is
//! left, behind the trace.

use iced_x86::{Instruction, Mnemonic};

use super::asm::{Alu, Asm, Host, R10, R15};
use super::frame::slot as at_slot;
use super::lazy_flags::{self, Operation};
use super::registers::FIXED;
use crate::op::operand::{gpr, is_gpr, is_immediate};
use crate::op::slot;

/// Flags whose operation is known, but whose operands are not stored yet ([`super::lazy_flags`]). The host registers are
/// those of fixed guest registers, so they hold the values until the guest changes its registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub operation: Operation,
    pub log2: u8,
    x: First,
    y: Second,
    /// Guest registers in which the operands are.
    pub guests: u16,
}

/// The first operand of an operation. Its value is computed when it is stored.
#[derive(Debug, Clone, Copy)]
enum First {
    Register(Host),
    /// The register AND the second operand.
    Common(Host),
    /// The register minus the second operand, which has been added to it.
    Before(Host),
    /// The register plus the second operand, which has been subtracted from it.
    Above(Host),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Second {
    Register(Host),
    Immediate(i32),
}

impl Pending {
    /// Returns the pending flags after an instruction, if its operands stay in fixed registers. `hosts` has the host
    /// register of each operand.
    pub(super) fn after(
        i: &Instruction,
        operation: Operation,
        log2: u8,
        hosts: &[Option<Host>; 3],
    ) -> Option<Pending> {
        let fixed = |k: u32| {
            let guest = is_gpr(i, k).then(|| gpr(i.op_register(k)) & 15)?;
            let host = hosts[k as usize]?;
            FIXED.contains(&host).then_some((host, 1 << guest))
        };
        let (first, mut guests) = fixed(0)?;
        let of_result = operation == Operation::Logic && i.mnemonic() != Mnemonic::Test;
        let y = if is_immediate(i, 1) {
            Second::Immediate(i.immediate(1) as i64 as i32)
        } else if of_result {
            // The flags depend on the result alone.
            Second::Immediate(0)
        } else {
            let (second, guest) = fixed(1)?;
            guests |= guest;
            Second::Register(second)
        };
        let is_same = y == Second::Register(first);
        let x = match i.mnemonic() {
            Mnemonic::Cmp => First::Register(first),
            Mnemonic::Test if !is_same => First::Common(first),
            Mnemonic::Test | Mnemonic::And | Mnemonic::Or | Mnemonic::Xor => First::Register(first),
            // The smallest immediate has no negative.
            Mnemonic::Add if !is_same && y != Second::Immediate(i32::MIN) => First::Before(first),
            Mnemonic::Sub if !is_same => First::Above(first),
            _ => return None,
        };
        Some(Pending { operation, log2, x, y, guests })
    }
    /// Emits the stores of the operands, the operation and the width. Clobbers R10. Returns true if the code changes the
    /// host's flags.
    pub(super) fn store(self, asm: &mut Asm) -> bool {
        let changes = match (self.x, self.y) {
            (First::Register(x), _) => {
                asm.store(R15, at_slot(slot::X), x);
                false
            }
            (First::Common(x), y) => {
                asm.copy(R10, x);
                match y {
                    Second::Register(y) => asm.alu(Alu::And, R10, y),
                    Second::Immediate(y) => asm.alu_imm(Alu::And, R10, y),
                }
                true
            }
            (First::Before(x), Second::Register(y)) => {
                asm.copy(R10, x);
                asm.alu(Alu::Sub, R10, y);
                true
            }
            (First::Before(x), Second::Immediate(y)) => {
                asm.add_to(R10, x, -y);
                false
            }
            (First::Above(x), Second::Register(y)) => {
                asm.sum(R10, x, y, 0, 0);
                false
            }
            (First::Above(x), Second::Immediate(y)) => {
                asm.add_to(R10, x, y);
                false
            }
        };
        if !matches!(self.x, First::Register(_)) {
            asm.store(R15, at_slot(slot::X), R10);
        }
        match self.y {
            _ if self.operation == Operation::Logic => {}
            Second::Register(y) => asm.store(R15, at_slot(slot::Y), y),
            Second::Immediate(y) => asm.store_imm(R15, at_slot(slot::Y), y),
        }
        asm.store8_imm(R15, at_slot(slot::KIND), lazy_flags::kind(self.operation, self.log2));
        changes
    }
}

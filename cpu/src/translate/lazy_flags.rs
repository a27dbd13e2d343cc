//! Lazy flags: translated code stores the operands of an operation, and computes flags from the operands only when
//! something reads the flags. [`settle`] computes all flags for the interpreter, and [`compute`] emits code that
//! computes them. An instruction that changes only CF, or CF and OF, leaves the operands as they are, and stores its CF
//! and OF beside them.
//!
//! **Invariant.** Outside of translated code the stored kind (operation and width) is [`NONE`], and
//! [`crate::core::Core::flags`] is up to date.

use super::asm::{Alu, Asm, R10, R11, R15};
use super::frame::slot as at_slot;
use crate::core::Core;
use crate::exec::integer::alu::{add_flags, sub_flags};
use crate::exec::integer::shift;
use crate::exec::integer::width::Width;
use crate::flags::{Flags, bits};
use crate::op::slot;

/// Operation that left the stored operands x and y.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// x + y.
    Add,
    /// x - y.
    Sub,
    /// x is the result of a bitwise operation.
    Logic,
    /// x << y.
    Shl,
    /// x >> y.
    Shr,
    /// x >> y, signed.
    Sar,
    /// x is the low half of a product. Bit 0 of y is set if the product does not fit into x.
    Product,
    /// x is the host's flags after the operation. The binary logarithm in its kind selects the flags that are the
    /// guest's ([`mask_of_host`]).
    Host,
}

/// Kind that means that no operands are stored, because [`crate::core::Core::flags`] is up to date.
pub(super) const NONE: u8 = 0;

/// Bit of the stored kind: the guest's CF is byte [`CARRY_BYTE`], whatever the stored operation's CF is.
pub(super) const OWN_CARRY: u8 = 0x40;
/// Bit of the stored kind: the guest's OF is byte [`OVERFLOW_BYTE`]. [`OWN_CARRY`] is then set, too.
pub(super) const OWN_OVERFLOW: u8 = 0x80;
/// Bytes of [`slot::KIND`] that hold a CF and an OF of their own, each 0 or 1.
pub(super) const CARRY_BYTE: u8 = 1;
pub(super) const OVERFLOW_BYTE: u8 = 2;

/// Returns the kind that stands for an operation on operands of `1 << log2` bytes. Its bits [`OWN_CARRY`] and
/// [`OWN_OVERFLOW`] are clear.
pub(super) fn kind(operation: Operation, log2: u8) -> u8 {
    1 + (operation as u8) * 4 + log2
}

/// Computes the flags from the stored operands and stores them in [`Core::flags`], which the interpreter reads.
#[inline]
pub(super) fn settle(core: &mut Core) {
    let stored = std::mem::take(&mut core.regs[slot::KIND as usize]);
    let kind = stored as u8 & !(OWN_CARRY | OWN_OVERFLOW);
    if kind != NONE {
        let (x, y) = (core.regs[slot::X as usize], core.regs[slot::Y as usize]);
        core.flags = match (kind - 1) & 3 {
            0 => flags::<u8>(kind, x, y),
            1 => flags::<u16>(kind, x, y),
            2 => flags::<u32>(kind, x, y),
            _ => flags::<u64>(kind, x, y),
        };
    }
    if stored as u8 & OWN_CARRY != 0 {
        let is_set = |byte: u8| stored >> (8 * byte) & 1 != 0;
        let overflow = if stored as u8 & OWN_OVERFLOW != 0 { is_set(OVERFLOW_BYTE) } else { core.flags.of() };
        core.flags = core.flags.with_cf_of(is_set(CARRY_BYTE), overflow);
    }
}

/// Mask of the host's flags that the guest's flags are taken from.
pub(super) const GUEST_FLAGS: u32 = bits::ARITH as u32;

/// Returns the mask of the flags that are the guest's after an [`Operation::Host`]. The guest's other flags are clear. The
/// argument is the binary logarithm in the operation's kind: 3 stands for all flags, 2 for all but AF and PF, and 1 for CF
/// and ZF.
pub(super) fn mask_of_host(log2: u8) -> u32 {
    match log2 {
        3 => GUEST_FLAGS,
        2 => GUEST_FLAGS & !(bits::AF | bits::PF) as u32,
        _ => (bits::CF | bits::ZF) as u32,
    }
}

fn flags<W: Width>(kind: u8, x: u64, y: u64) -> Flags {
    let (x, y) = (x & W::MASK, y & W::MASK);
    match (kind - 1) / 4 {
        0 => add_flags::<W>(x, y, x.wrapping_add(y)),
        1 => sub_flags::<W>(x, y, x.wrapping_sub(y)),
        2 => Flags::logic(W::sext(x)),
        3 => shift::flags_of_shl::<W>(x, y as u32),
        4 => shift::flags_of_shr::<W>(x, y as u32),
        5 => shift::flags_of_sar::<W>(x, y as u32),
        6 => Flags::result(W::sext(x), y & 1 != 0, y & 1 != 0),
        _ => Flags::from_bits(x & u64::from(mask_of_host((kind - 1) & 3))),
    }
}

/// Emits code that sets the host's flags to the operation's flags, computed from the stored operands. Covers all flags
/// that conditional instructions read. No CF may be stored beside the operands. Returns false if such code is impossible.
/// The code clobbers R10 and R11.
pub(super) fn compute(asm: &mut Asm, operation: Operation, log2: u8) -> bool {
    match operation {
        Operation::Logic => {
            asm.load(R10, R15, at_slot(slot::X));
            asm.test(log2, R10, R10);
        }
        Operation::Add | Operation::Sub => {
            asm.load(R10, R15, at_slot(slot::X));
            asm.load(R11, R15, at_slot(slot::Y));
            let alu = if operation == Operation::Add { Alu::Add } else { Alu::Sub };
            asm.alu_by_width(alu, log2, R10, R11);
        }
        Operation::Host => {
            asm.load(R10, R15, at_slot(slot::X));
            asm.and32(R10, mask_of_host(log2));
            asm.push(R10);
            asm.pop_flags();
        }
        // Hosts differ in the flags after shifts by more than one, and after multiplications.
        Operation::Shl | Operation::Shr | Operation::Sar | Operation::Product => return false,
    }
    true
}

/// Emits code that sets the host's CF to the guest's CF. The stored operation must be [`Operation::Host`], so that the
/// stored operand x is a copy of the host's flags.
pub(super) fn carry_of_host(asm: &mut Asm) {
    asm.bit_test(R15, at_slot(slot::X), 0);
}

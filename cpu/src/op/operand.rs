//! Fills in the operands of an [`Op`]: converts the decoder's registers to slots, i.e. indices of the CPU's register
//! array.

use crate::op::{ADDRESS_32, FAR_PAGE, Op, STACK_OPERAND, STACK_SEGMENT, slot};
use iced_x86::{Instruction, OpKind, Register};

/// Returns the slot of a general register of any width. For AH, CH, DH and BH, bit 4 is set.
pub(crate) fn gpr(r: Register) -> u8 {
    match r {
        Register::AH => 0x10,
        Register::CH => 0x11,
        Register::DH => 0x12,
        Register::BH => 0x13,
        _ => r.full_register().number() as u8,
    }
}

/// True if operand `n` is a general register.
pub(crate) fn is_gpr(i: &Instruction, n: u32) -> bool {
    i.op_kind(n) == OpKind::Register && i.op_register(n).is_gpr()
}

/// True if operand `n` is in memory.
pub(crate) fn is_memory(i: &Instruction, n: u32) -> bool {
    i.op_kind(n) == OpKind::Memory
}

/// True if operand `n` is an immediate.
pub(crate) fn is_immediate(i: &Instruction, n: u32) -> bool {
    matches!(
        i.op_kind(n),
        OpKind::Immediate8
            | OpKind::Immediate8_2nd
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

/// Returns the width in bytes of operand `n`, which is a register or in memory.
pub(crate) fn width(i: &Instruction, n: u32) -> usize {
    match i.op_kind(n) {
        OpKind::Register => i.op_register(n).size(),
        _ => i.memory_size().size(),
    }
}

/// Stores the memory operand's address in `op`. The decoder assumes that the instruction's page begins at address 0.
/// RIP-relative addresses are therefore stored as offsets from that page, whose linear address is in a slot.
pub(crate) fn memory(i: &Instruction, op: &mut Op) {
    op.index = slot::ZERO;
    op.scale = 0;
    let base = i.memory_base();
    if base == Register::RIP || base == Register::EIP {
        let target = i.memory_displacement64() as i64;
        match i32::try_from(target) {
            Ok(disp) => (op.base, op.disp) = (slot::PAGE, disp),
            Err(_) => (op.base, op.disp) = (slot::PAGE_FAR, (target - FAR_PAGE as i64) as i32),
        }
    } else {
        op.base = if base == Register::None { slot::ZERO } else { gpr(base) };
        op.disp = i.memory_displacement64() as i32;
        if i.memory_index() != Register::None {
            op.index = gpr(i.memory_index());
            op.scale = i.memory_index_scale().trailing_zeros() as u8;
        }
    }
    if base == Register::EIP
        || base.is_gpr32()
        || i.memory_index().is_gpr32()
        || (base == Register::None && i.memory_index() == Register::None && i.memory_displ_size() == 4)
    {
        op.scale |= ADDRESS_32;
    }
    op.seg = segment_slot(i.memory_segment());
    if is_stack_operand(i) {
        op.aux |= STACK_SEGMENT | STACK_OPERAND;
    }
}

/// True if the memory operand is accessed through SS: its base is RSP or RBP, and no prefix selects FS or GS. In 64-bit
/// mode the processor ignores prefixes for SS, DS, ES and CS.
pub(crate) fn is_stack_operand(i: &Instruction) -> bool {
    use Register::{EBP, ESP, FS, GS, RBP, RSP};
    matches!(i.memory_base(), RSP | RBP | ESP | EBP) && !matches!(i.memory_segment(), FS | GS)
}

/// Returns the slot of a segment's base. In 64-bit mode only FS and GS have a base (SDM vol. 1, 3.4.4).
pub(crate) fn segment_slot(segment: Register) -> u8 {
    match segment {
        Register::FS => slot::FS,
        Register::GS => slot::GS,
        _ => slot::ZERO,
    }
}

/// True if the address is only a base and a displacement.
pub(crate) fn is_near(op: &Op) -> bool {
    op.index == slot::ZERO && op.scale == 0 && op.seg == slot::ZERO
}

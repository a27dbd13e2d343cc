//! A decoded instruction, ready to execute: a handler and its operands, 32 bytes. `operand` fills in the operands.

pub(crate) mod operand;

use crate::core::Core;
pub(crate) use crate::core::slot;
pub(crate) use crate::core::slot::FAR_PAGE;
use crate::stop::{Flow, Stop, vector};

/// Function that executes an operation.
pub(crate) type Handler = fn(&mut Core, &Op) -> Flow;

/// `Op::scale` bit: the address is truncated to 32 bits (prefix 67).
pub(crate) const ADDRESS_32: u8 = 0x80;
/// `Op::aux` bit: the memory operand's segment is SS, so its address faults are #SS.
pub(crate) const STACK_SEGMENT: u16 = 0x8000;

/// `Op::aux` bit: the explicit memory operand's segment is SS, in an instruction that also accesses the stack.
pub(crate) const STACK_OPERAND: u16 = 0x4000;

/// `Op::aux` bit: the instruction is a near branch.
pub(crate) const JUMP: u16 = 0x2000;
/// `Op::aux` bit of a near branch: it is conditional.
pub(crate) const CONDITIONAL: u16 = 0x1000;

/// One instruction of a block.
#[derive(Clone, Copy)]
pub(crate) struct Op {
    /// Handler that executes the instruction.
    pub run: Handler,
    /// Immediate, sign-extended to 64 bits if the instruction does so.
    pub imm: u64,
    /// Displacement of the memory operand, or offset of the branch target from the start of the page.
    pub disp: i32,
    /// Destination register. For 8-bit registers, bit 4 selects the second byte (AH, CH, DH, BH).
    pub dst: u8,
    /// Source register.
    pub src: u8,
    /// Slot of the base register.
    pub base: u8,
    /// Slot of the index register.
    pub index: u8,
    /// Left shift of the index, and `ADDRESS_32`.
    pub scale: u8,
    /// Slot of the segment base.
    pub seg: u8,
    /// Offset of the instruction in its page.
    pub off: u16,
    /// Length of the instruction in bytes.
    pub len: u8,
    /// Number of instructions before this one in the block.
    pub idx: u8,
    /// Handler-specific bits, `STACK_SEGMENT`, `STACK_OPERAND`, `JUMP` and `CONDITIONAL`.
    pub aux: u16,
}

const _: () = assert!(size_of::<Op>() == 32);

/// Effect of an instruction on the block that it is decoded into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The block continues with the next instruction.
    Straight,
    /// The block ends: control flow, or an event that the run loop must handle.
    Ends,
}

impl Op {
    /// True for a conditional branch: Jcc, LOOP, LOOPE, LOOPNE, JRCXZ.
    #[inline(always)]
    pub(crate) fn is_conditional(&self) -> bool {
        self.aux & (JUMP | CONDITIONAL) == JUMP | CONDITIONAL
    }
    /// Returns the linear address of the memory operand, segment base included.
    #[inline(always)]
    pub(crate) fn ea(&self, core: &Core) -> u64 {
        let offset = self.offset(core);
        offset.wrapping_add(core.regs[(self.seg & 31) as usize])
    }
    /// Returns the offset of the memory operand, without the segment base. LEA computes this value.
    #[inline(always)]
    pub(crate) fn offset(&self, core: &Core) -> u64 {
        let v = core.regs[(self.base & 31) as usize]
            .wrapping_add(core.regs[(self.index & 31) as usize] << (self.scale & 3))
            .wrapping_add(self.disp as i64 as u64);
        if self.scale & ADDRESS_32 != 0 { v & 0xffff_ffff } else { v }
    }
    /// Returns the linear address of this instruction.
    #[inline(always)]
    pub(crate) fn rip(&self, core: &Core) -> u64 {
        core.regs[slot::PAGE as usize].wrapping_add(u64::from(self.off))
    }
    /// Returns the linear address of the next instruction in sequence.
    #[inline(always)]
    pub(crate) fn next_rip(&self, core: &Core) -> u64 {
        self.rip(core).wrapping_add(u64::from(self.len))
    }
}

/// Form of a memory operand's address, by which handlers are monomorphised.
pub(crate) trait Address {
    /// Returns the linear address.
    fn of(core: &Core, op: &Op) -> u64;
}

/// Base and displacement only, without segment base, 64-bit: the most frequent form.
pub(crate) struct Near;
/// Any other form.
pub(crate) struct Full;

impl Address for Near {
    #[inline(always)]
    fn of(core: &Core, op: &Op) -> u64 {
        core.regs[(op.base & 31) as usize].wrapping_add(op.disp as i64 as u64)
    }
}
impl Address for Full {
    #[inline(always)]
    fn of(core: &Core, op: &Op) -> u64 {
        op.ea(core)
    }
}

impl Core {
    /// Adjusts the fault of an explicit memory operand in an instruction that also accesses the stack. The operand's
    /// own segment decides whether its address fault is #SS.
    #[cold]
    pub(crate) fn operand_stop(&mut self, op: &Op, stop: Stop) -> Stop {
        if std::mem::take(&mut self.mem.fault.non_canonical) && op.aux & STACK_OPERAND != 0 {
            self.mem.fault.vector = vector::SS;
        }
        stop
    }
    /// Returns the TSC at an instruction of the current block.
    pub(crate) fn read_tsc(&self, op: &Op) -> u64 {
        let now = self.icount + u64::from(op.idx);
        let since = u128::from(now.saturating_sub(self.tsc.icount));
        let ticks = since * u128::from(self.tsc.num) / u128::from(self.tsc.den);
        self.tsc.tsc.wrapping_add(ticks as u64).wrapping_add(self.msrs.tsc_offset)
    }
}

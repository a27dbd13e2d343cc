//! A decoded instruction, ready to execute: its handler (the function that executes it) and its operands, in 32 bytes.
//! `operand` fills in the operands.

pub(crate) mod operand;

use crate::core::Core;
pub(crate) use crate::core::slot;
pub(crate) use crate::core::slot::FAR_PAGE;
use crate::stop::{Flow, Stop, vector};

/// Function that executes an operation.
pub(crate) type Handler = fn(&mut Core, &Op) -> Flow;

/// Bit of `Op::scale`: the address is truncated to 32 bits (prefix 67).
pub(crate) const ADDRESS_32: u8 = 0x80;
/// Bit of `Op::aux`: the instruction accesses memory through SS, so a non-canonical address raises #SS.
pub(crate) const STACK_SEGMENT: u16 = 0x8000;

/// Bit of `Op::aux`: the explicit memory operand is accessed through SS. [`Core::operand_stop`] reads this bit, because
/// `STACK_SEGMENT` is also set if the instruction only pushes or pops through SS.
pub(crate) const STACK_OPERAND: u16 = 0x4000;

/// Bit of `Op::aux`: the instruction is a near branch.
pub(crate) const JUMP: u16 = 0x2000;
/// Bit of `Op::aux`: the near branch is conditional.
pub(crate) const CONDITIONAL: u16 = 0x1000;

/// One instruction of a block.
#[derive(Clone, Copy)]
pub(crate) struct Op {
    /// Handler that executes the instruction.
    pub run: Handler,
    /// Immediate, sign-extended to 64 bits if the instruction sign-extends it.
    pub imm: u64,
    /// Displacement of the memory operand, or offset of the branch target from the start of the page.
    pub disp: i32,
    /// Destination register. For 8-bit registers, bit 4 selects AH, CH, DH or BH.
    pub dst: u8,
    /// Source register. For 8-bit registers, bit 4 selects AH, CH, DH or BH.
    pub src: u8,
    /// Slot of the base register, i.e. its index in `Core::regs`.
    pub base: u8,
    /// Slot of the index register.
    pub index: u8,
    /// Number of bits by which the index is shifted left, and `ADDRESS_32`.
    pub scale: u8,
    /// Slot of the segment base.
    pub seg: u8,
    /// Offset of the instruction in its page.
    pub off: u16,
    /// Length of the instruction in bytes.
    pub len: u8,
    /// Number of instructions before this one in the block.
    pub idx: u8,
    /// Bits that depend on the handler, and `STACK_SEGMENT`, `STACK_OPERAND`, `JUMP` and `CONDITIONAL`.
    pub aux: u16,
}

const _: () = assert!(size_of::<Op>() == 32);

/// Effect of an instruction on the block that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The block continues with the next instruction.
    Straight,
    /// The block ends after the instruction: it is control flow, or the run loop must check something.
    Ends,
}

impl Op {
    /// True for a conditional branch: Jcc, LOOP, LOOPE, LOOPNE, JRCXZ, JECXZ.
    #[inline(always)]
    pub(crate) fn is_conditional(&self) -> bool {
        self.aux & (JUMP | CONDITIONAL) == JUMP | CONDITIONAL
    }
    /// Returns the linear address of the memory operand, including the segment base.
    #[inline(always)]
    pub(crate) fn ea(&self, core: &Core) -> u64 {
        let offset = self.offset(core);
        offset.wrapping_add(core.regs[(self.seg & 31) as usize])
    }
    /// Returns the offset of the memory operand, which excludes the segment base. LEA computes this value.
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
    /// Returns the linear address directly after this instruction.
    #[inline(always)]
    pub(crate) fn next_rip(&self, core: &Core) -> u64 {
        self.rip(core).wrapping_add(u64::from(self.len))
    }
}

/// Form of a memory operand's address. Handlers are generic over it.
pub(crate) trait Address {
    /// Returns the linear address.
    fn of(core: &Core, op: &Op) -> u64;
}

/// Address of 64 bits from base and displacement only, the most frequent form.
pub(crate) struct Near;
/// Address of any form, with index, segment base or 32-bit truncation.
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
    /// Adjusts the fault of an explicit memory operand in an instruction that also pushes or pops. The fault is #SS
    /// only if the operand itself is accessed through SS.
    #[cold]
    pub(crate) fn operand_stop(&mut self, op: &Op, stop: Stop) -> Stop {
        if std::mem::take(&mut self.mem.fault.non_canonical) && op.aux & STACK_OPERAND != 0 {
            self.mem.fault.vector = vector::SS;
        }
        stop
    }
    /// Returns the TSC before an instruction of the current block.
    pub(crate) fn read_tsc(&self, op: &Op) -> u64 {
        let now = self.icount + u64::from(op.idx);
        let since = u128::from(now.saturating_sub(self.tsc.icount));
        let ticks = since * u128::from(self.tsc.num) / u128::from(self.tsc.den);
        self.tsc.tsc.wrapping_add(ticks as u64).wrapping_add(self.msrs.tsc_offset)
    }
}

//! A decoded instruction, ready to run: a handler and its operands, 32 bytes; `operand` fills in the latter.

pub(crate) mod operand;

use crate::core::Core;
pub(crate) use crate::core::slot;
pub(crate) use crate::core::slot::FAR_PAGE;
use crate::stop::{Flow, Stop, vector};

/// What executes an operation.
pub(crate) type Handler = fn(&mut Core, &Op) -> Flow;

/// `Op::scale` bit: the address is cut to 32 bits (prefix 67).
pub(crate) const ADDRESS_32: u8 = 0x80;
/// `Op::aux` bit: the memory operand's segment is SS (its address faults are #SS).
pub(crate) const STACK_SEGMENT: u16 = 0x8000;

/// `Op::aux` bit: the explicit memory operand's segment is SS, in instructions that access the stack besides.
pub(crate) const STACK_OPERAND: u16 = 0x4000;

/// `Op::aux` bit: a near branch.
pub(crate) const JUMP: u16 = 0x2000;
/// `Op::aux` bit of a near branch: a conditional one.
pub(crate) const CONDITIONAL: u16 = 0x1000;

/// One instruction of a block.
#[derive(Clone, Copy)]
pub(crate) struct Op {
    /// What to do.
    pub run: Handler,
    /// Immediate, sign-extended to 64 bits where the instruction does so.
    pub imm: u64,
    /// Displacement of the memory operand, or of the branch target from the page's start.
    pub disp: i32,
    /// Destination register. 8-bit registers: bit 4 selects the second byte (AH, CH, DH, BH).
    pub dst: u8,
    /// Source register.
    pub src: u8,
    /// Slot of the base.
    pub base: u8,
    /// Slot of the index.
    pub index: u8,
    /// Shift of the index, and `ADDRESS_32`.
    pub scale: u8,
    /// Slot of the segment base.
    pub seg: u8,
    /// Offset of the instruction in its page.
    pub off: u16,
    /// Length in bytes.
    pub len: u8,
    /// Instructions of the block before this one.
    pub idx: u8,
    /// Handler-specific, `STACK_SEGMENT`, `STACK_OPERAND` and `JUMP`.
    pub aux: u16,
}

const _: () = assert!(size_of::<Op>() == 32);

/// Whether a block goes on after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It does.
    Straight,
    /// It ends: control flow, or something that the run loop must look at.
    Ends,
}

impl Op {
    /// Whether it is a conditional branch: Jcc, LOOP and its kin, JRCXZ.
    #[inline(always)]
    pub(crate) fn is_conditional(&self) -> bool {
        self.aux & (JUMP | CONDITIONAL) == JUMP | CONDITIONAL
    }
    /// The linear address of the memory operand, segment base included.
    #[inline(always)]
    pub(crate) fn ea(&self, core: &Core) -> u64 {
        let offset = self.offset(core);
        offset.wrapping_add(core.regs[(self.seg & 31) as usize])
    }
    /// The offset of the memory operand: what LEA computes.
    #[inline(always)]
    pub(crate) fn offset(&self, core: &Core) -> u64 {
        let v = core.regs[(self.base & 31) as usize]
            .wrapping_add(core.regs[(self.index & 31) as usize] << (self.scale & 3))
            .wrapping_add(self.disp as i64 as u64);
        if self.scale & ADDRESS_32 != 0 { v & 0xffff_ffff } else { v }
    }
    /// Linear address of this instruction.
    #[inline(always)]
    pub(crate) fn rip(&self, core: &Core) -> u64 {
        core.regs[slot::PAGE as usize].wrapping_add(u64::from(self.off))
    }
    /// Linear address of the next instruction in sequence.
    #[inline(always)]
    pub(crate) fn next_rip(&self, core: &Core) -> u64 {
        self.rip(core).wrapping_add(u64::from(self.len))
    }
}

/// How a handler finds the address of its memory operand.
pub(crate) trait Address {
    /// The linear address.
    fn of(core: &Core, op: &Op) -> u64;
}

/// Base and displacement only, no segment base, 64-bit: most operands.
pub(crate) struct Near;
/// Everything else.
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
    /// The stop of an explicit memory operand in an instruction that accesses the stack as well: whether its address
    /// fault is #SS does not depend on the stack access.
    #[cold]
    pub(crate) fn operand_stop(&mut self, op: &Op, stop: Stop) -> Stop {
        if std::mem::take(&mut self.mem.fault.non_canonical) && op.aux & STACK_OPERAND != 0 {
            self.mem.fault.vector = vector::SS;
        }
        stop
    }
    /// The TSC at an instruction of the current block.
    pub(crate) fn read_tsc(&self, op: &Op) -> u64 {
        let now = self.icount + u64::from(op.idx);
        let since = u128::from(now.saturating_sub(self.tsc.icount));
        let ticks = since * u128::from(self.tsc.num) / u128::from(self.tsc.den);
        self.tsc.tsc.wrapping_add(ticks as u64).wrapping_add(self.msrs.tsc_offset)
    }
}

//! A decoded instruction, ready to run: a handler and its operands, 32 bytes.

use crate::core::Core;
use crate::stop::Flow;

/// What executes an operation.
pub(crate) type Handler = fn(&mut Core, &Op) -> Flow;

/// How far the second of the two pages that RIP-relative operands name lies from the first.
pub(crate) const FAR_PAGE: u64 = 1 << 30;

/// Register slots beyond the sixteen general ones, so that every address is the same sum of slots.
pub(crate) mod slot {
    /// Always zero.
    pub(crate) const ZERO: u8 = 16;
    /// Linear address of the page that the block lies on, for RIP-relative operands and branch targets.
    pub(crate) const PAGE: u8 = 17;
    /// FS base.
    pub(crate) const FS: u8 = 18;
    /// GS base.
    pub(crate) const GS: u8 = 19;
    /// `PAGE` plus [`FAR_PAGE`](super::FAR_PAGE), for displacements that do not fit otherwise.
    pub(crate) const PAGE_FAR: u8 = 20;
    /// What only translated code uses, and means nothing outside of it: how many instructions are left before the limit,
    pub(crate) const LEFT: u8 = 24;
    /// what late flags are the operands of,
    pub(crate) const KIND: u8 = 25;
    /// the first of them,
    pub(crate) const X: u8 = 26;
    /// the second,
    pub(crate) const Y: u8 = 27;
    /// where the numbers of pages' contents are,
    pub(crate) const CONTENTS: u8 = 28;
    /// where the table of jumps is, which is seldom looked into and lies beyond the reach of one byte,
    pub(crate) const JUMPS: u8 = 32;
    /// where the last pages are,
    pub(crate) const PAGES: u8 = 21;
    /// where the last jumps are,
    pub(crate) const HOPS: u8 = 22;
    /// where RAM begins,
    pub(crate) const RAM: u8 = 30;
    /// and where the table of edges is.
    pub(crate) const EDGES: u8 = 23;
    /// The place of a near branch whose target has not been fetched yet, or 0 ([`crate::edges`]).
    pub(crate) const FROM: u8 = 31;
    /// Conditional branches that retired, if they are counted.
    pub(crate) const BRANCHES: u8 = 29;
    /// How many there are.
    pub(crate) const COUNT: usize = 33;
}

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

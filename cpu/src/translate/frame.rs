//! Where translated code finds the CPU's state: displacements from R15, which points into the middle of what is used most,
//! so that one byte reaches all of it.

use std::mem::offset_of;

use crate::core::Core;

/// How far into [`Core`] R15 points.
pub(super) const MIDDLE: i32 = offset_of!(Core, regs) as i32 + 128;

/// A guest register, or another slot of [`crate::op::slot`].
pub(super) const fn slot(n: u8) -> i32 {
    8 * n as i32 - 128
}

/// Anything else in [`Core`], by its offset there.
pub(super) const fn field(offset: usize) -> i32 {
    offset as i32 - MIDDLE
}

/// The table of the software TLB for the current mode.
pub(super) const TABLE: i32 = field(offset_of!(Core, mem.tlb.table));
/// The number that changes when code may lie elsewhere.
pub(super) const EPOCH: i32 = field(offset_of!(Core, mem.tlb.epoch));
/// Where the CPU is between blocks.
pub(super) const RIP: i32 = field(offset_of!(Core, rip));

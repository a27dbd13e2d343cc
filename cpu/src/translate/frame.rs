//! Displacements by which translated code addresses the CPU's fields relative to R15. R15 points into the middle of the
//! most used fields. A displacement of one byte therefore reaches each of these fields.

use std::mem::offset_of;

use crate::core::Core;

/// Offset in [`Core`] to which R15 points.
pub(super) const MIDDLE: i32 = offset_of!(Core, regs) as i32 + 128;

/// Returns the displacement of a guest register or of a slot in [`crate::op::slot`].
pub(super) const fn slot(n: u8) -> i32 {
    8 * n as i32 - 128
}

/// Returns the displacement of a field of [`Core`] from the field's offset in [`Core`].
pub(super) const fn field(offset: usize) -> i32 {
    offset as i32 - MIDDLE
}

/// Displacement of the address of the current mode's TLB table.
pub(super) const TABLE: i32 = field(offset_of!(Core, mem.tlb.table));
/// Displacement of the current mode's TLB epoch, a number that changes when remembered jump targets become invalid.
pub(super) const EPOCH: i32 = field(offset_of!(Core, mem.tlb.epoch));
/// Displacement of the guest's MXCSR.
pub(super) const MXCSR: i32 = field(offset_of!(Core, fpu.mxcsr));
/// Displacement of the host's MXCSR.
pub(super) const HOST_MXCSR: i32 = field(offset_of!(Core, native.host_mxcsr));
/// Displacement of the byte that is 1 while the guest's MXCSR is in the host's register, and otherwise 0.
pub(super) const MXCSR_IS_GUESTS: i32 = field(offset_of!(Core, native.mxcsr_is_guests));
/// Displacement of the byte that is 1 while upper halves of the host's YMM registers are in use, and otherwise 0.
pub(super) const UPPERS_IN_USE: i32 = field(offset_of!(Core, native.uppers_in_use));
/// Displacements of two places for vector registers.
pub(super) const SPILLED: [i32; 2] = {
    let first = field(offset_of!(Core, native.spilled));
    [first, first + 32]
};
/// Displacements of the address of the table of recorded edges, and of its index mask.
pub(super) const EDGES_TABLE: i32 = field(offset_of!(Core, native.edges.0));
pub(super) const EDGES_MASK: i32 = field(offset_of!(Core, native.edges.1));
/// Displacement of the address of the table of edges that were looked up last.
pub(super) const EDGES_RECENT: i32 = field(offset_of!(Core, native.edges_recent));
/// Displacement of the number of the check for the edge that is about to be recorded.
pub(super) const EDGE_CHECK: i32 = field(offset_of!(Core, native.edge_check));
/// Displacement of MXCSR before the last fused multiply-add.
pub(super) const OLD_MXCSR: i32 = field(offset_of!(Core, native.old_mxcsr));
/// Displacement of all bits of RFLAGS except the arithmetic flags.
pub(super) const RFLAGS: i32 = field(offset_of!(Core, rflags));
/// Displacement of RIP. Translated code sets RIP only between blocks.
pub(super) const RIP: i32 = field(offset_of!(Core, rip));

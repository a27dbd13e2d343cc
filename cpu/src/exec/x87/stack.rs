//! The register stack, tags, and exception handling (SDM vol. 1, 8.1 and 8.4-8.7).

use crate::core::{Core, cr0};
use crate::host_fp::x87::Extended;
use crate::op::Op;
use crate::stop::{Flow, vector};

/// Exception flags of the status word.
pub(super) const IE: u16 = 1;
pub(super) const DE: u16 = 1 << 1;
pub(super) const ZE: u16 = 1 << 2;
pub(super) const OE: u16 = 1 << 3;
pub(super) const UE: u16 = 1 << 4;
pub(super) const PE: u16 = 1 << 5;
/// All six exception flags.
pub(super) const EXCEPTIONS: u16 = 0x3f;
/// Exceptions that hardware detects before the computation. If unmasked, they leave the operands unchanged.
pub(super) const BEFORE: u16 = IE | DE | ZE;
/// Exceptions that prevent a store to memory if they are unmasked.
pub(super) const BEFORE_STORE: u16 = BEFORE | OE | UE;
/// Stack fault flag.
const SF: u16 = 1 << 6;
/// ES, which says that an unmasked exception is pending, and B, a copy of ES for old programs.
pub(super) const PENDING: u16 = 0x8080;
pub(super) const C0: u16 = 1 << 8;
pub(super) const C1: u16 = 1 << 9;
pub(super) const C2: u16 = 1 << 10;
pub(super) const C3: u16 = 1 << 14;
pub(super) const CONDITION: u16 = C0 | C2 | C3;
/// Position of TOP in the status word.
pub(super) const TOP_SHIFT: u32 = 11;
pub(super) const TOP: u16 = 7 << TOP_SHIFT;

/// Flags of a stack underflow: the instruction used an empty register.
pub(super) const UNDERFLOW: u16 = IE | SF;
/// Flags of a stack overflow: the instruction pushed onto a register that is not empty.
pub(super) const OVERFLOW: u16 = IE | SF | C1;

/// Default NaN, which is the result of a masked invalid operation.
pub(super) const INDEFINITE: Extended = (0xc000_0000_0000_0000, 0xffff);

/// Bit of `Op::aux`: the instruction has a memory operand.
pub(super) const MEMORY: u16 = 1;

/// Raises #NM, or #MF if an exception is pending. Called before each waiting instruction, i.e. each that reports
/// pending exceptions. If CR0.NE is clear, hardware reports the exception through a pin. This machine lacks that pin,
/// so the CPU raises #MF in both cases.
#[inline]
pub(super) fn enter(core: &mut Core) -> Flow {
    available(core)?;
    if core.fpu.fsw & PENDING != 0 {
        return Err(core.raise(vector::MF));
    }
    Ok(())
}

/// Raises #NM if CR0.EM or CR0.TS is set. Called before every x87 instruction.
#[inline]
pub(super) fn available(core: &mut Core) -> Flow {
    if core.cr0 & (cr0::EM | cr0::TS) != 0 { Err(core.raise(vector::NM)) } else { Ok(()) }
}

/// Returns the number of the physical register that is ST(`i`).
#[inline]
pub(super) fn physical(core: &Core, i: u8) -> usize {
    usize::from((core.fpu.fsw >> TOP_SHIFT) as u8 + i) & 7
}

/// Returns ST(`i`), or `None` if it is empty.
#[inline]
pub(super) fn st(core: &Core, i: u8) -> Option<Extended> {
    let n = physical(core, i);
    (core.fpu.ftw >> n & 1 != 0).then_some(core.fpu.r[n])
}

/// Sets ST(`i`) and marks it as not empty.
#[inline]
pub(super) fn set_st(core: &mut Core, i: u8, v: Extended) {
    let n = physical(core, i);
    core.fpu.r[n] = v;
    core.fpu.ftw |= 1 << n;
}

/// Marks ST(`i`) as empty.
#[inline]
pub(super) fn free(core: &mut Core, i: u8) {
    core.fpu.ftw &= !(1 << physical(core, i));
}

/// Adds `by` to TOP, modulo 8.
#[inline]
pub(super) fn rotate(core: &mut Core, by: u16) {
    let top = (core.fpu.fsw >> TOP_SHIFT).wrapping_add(by) & 7;
    core.fpu.fsw = core.fpu.fsw & !TOP | top << TOP_SHIFT;
}

/// Pops ST(0).
#[inline]
pub(super) fn pop(core: &mut Core) {
    free(core, 0);
    rotate(core, 1);
}

/// Pushes a value. Overwrites the register, even if it is not empty.
#[inline]
pub(super) fn push(core: &mut Core, v: Extended) {
    rotate(core, 7);
    set_st(core, 0, v);
}

/// True if a push would overflow the stack.
#[inline]
pub(super) fn full(core: &Core) -> bool {
    core.fpu.ftw >> physical(core, 7) & 1 != 0
}

/// Records the instruction pointer, the raised flags, and C1. Returns true if the instruction completes, i.e. if it
/// raised no unmasked exception in `stops`.
///
/// Only an unmasked exception updates the opcode and the data pointer, as on CPUs that report FDP_EXCPTN_ONLY (SDM vol.
/// 1, 8.1.8 and 8.1.9).
pub(super) fn settle(core: &mut Core, op: &Op, raised: u16, stops: u16) -> bool {
    core.fpu.fip = op.rip(core);
    core.fpu.fsw = core.fpu.fsw & !C1 | raised & (EXCEPTIONS | SF | C1);
    let unmasked = raised & !core.fpu.fcw & EXCEPTIONS;
    if unmasked != 0 {
        core.fpu.fsw |= PENDING;
        core.fpu.fop = opcode(core, op);
        if op.aux & MEMORY != 0 {
            core.fpu.fdp = op.offset(core);
        }
    }
    unmasked & stops == 0
}

/// Updates ES and B from the exception flags and masks.
pub(super) fn update_pending(core: &mut Core) {
    let f = &mut core.fpu;
    f.fsw &= !PENDING;
    if f.fsw & !f.fcw & EXCEPTIONS != 0 {
        f.fsw |= PENDING;
    }
}

/// Returns the last eleven bits of the instruction's two opcode bytes. Reads them from memory again.
#[cold]
fn opcode(core: &Core, op: &Op) -> u16 {
    let byte = |n: u64| {
        let gpa = core.mem.peek(op.rip(core).wrapping_add(n))?;
        core.mem.ram.contains(gpa, 1).then(|| core.mem.ram.load::<u8>(gpa))
    };
    for n in 0..u64::from(op.len) {
        if let (Some(first @ 0xd8..=0xdf), Some(second)) = (byte(n), byte(n + 1)) {
            return u16::from(first & 7) << 8 | u16::from(second);
        }
    }
    0
}

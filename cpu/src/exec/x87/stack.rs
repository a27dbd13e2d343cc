//! The register stack, tags, and exception handling (SDM vol. 1, 8.1 and 8.4-8.7).

use crate::core::{Core, cr0};
use crate::host_fp::x87::Extended;
use crate::op::Op;
use crate::stop::{Flow, vector};

/// Exception bits of the status word.
pub(super) const IE: u16 = 1;
pub(super) const DE: u16 = 1 << 1;
pub(super) const ZE: u16 = 1 << 2;
pub(super) const OE: u16 = 1 << 3;
pub(super) const UE: u16 = 1 << 4;
pub(super) const PE: u16 = 1 << 5;
/// All six exceptions.
pub(super) const EXCEPTIONS: u16 = 0x3f;
/// Exceptions detected before the computation. Unmasked, they leave the operands unchanged.
pub(super) const BEFORE: u16 = IE | DE | ZE;
/// Exceptions that prevent a store to memory if unmasked.
pub(super) const BEFORE_STORE: u16 = BEFORE | OE | UE;
/// Stack fault.
const SF: u16 = 1 << 6;
/// ES, which marks a pending unmasked exception, and B, its copy for old programs.
pub(super) const PENDING: u16 = 0x8080;
pub(super) const C0: u16 = 1 << 8;
pub(super) const C1: u16 = 1 << 9;
pub(super) const C2: u16 = 1 << 10;
pub(super) const C3: u16 = 1 << 14;
pub(super) const CONDITION: u16 = C0 | C2 | C3;
/// Shift of TOP in the status word.
pub(super) const TOP_SHIFT: u32 = 11;
pub(super) const TOP: u16 = 7 << TOP_SHIFT;

/// Status of a stack underflow: an empty register was used.
pub(super) const UNDERFLOW: u16 = IE | SF;
/// Status of a stack overflow: a value was pushed onto a register that is not empty.
pub(super) const OVERFLOW: u16 = IE | SF | C1;

/// Default NaN: the result of a masked invalid operation.
pub(super) const INDEFINITE: Extended = (0xc000_0000_0000_0000, 0xffff);

/// `Op::aux` bit: the instruction has a memory operand.
pub(super) const MEMORY: u16 = 1;

/// Checks for #NM, and for #MF of a pending exception; called before each waiting instruction. (Without CR0.NE,
/// hardware reports the exception through a pin that this machine does not have. #MF is raised in that case, too.)
#[inline]
pub(super) fn enter(core: &mut Core) -> Flow {
    available(core)?;
    if core.fpu.fsw & PENDING != 0 {
        return Err(core.raise(vector::MF));
    }
    Ok(())
}

/// Checks for #NM. Called before every x87 instruction.
#[inline]
pub(super) fn available(core: &mut Core) -> Flow {
    if core.cr0 & (cr0::EM | cr0::TS) != 0 { Err(core.raise(vector::NM)) } else { Ok(()) }
}

/// Returns the physical register of ST(`i`).
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

/// Adds to TOP.
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

/// Pushes a value, overwriting the register's content.
#[inline]
pub(super) fn push(core: &mut Core, v: Extended) {
    rotate(core, 7);
    set_st(core, 0, v);
}

/// True if a push would overflow.
#[inline]
pub(super) fn full(core: &Core) -> bool {
    core.fpu.ftw >> physical(core, 7) & 1 != 0
}

/// Records the instruction, the flags that it raised, and its C1. Returns true if the instruction completes, i.e. no
/// exception in `stops` was raised unmasked.
///
/// The opcode is updated for unmasked exceptions only, and so is the data pointer, as on CPUs that report
/// FDP_EXCPTN_ONLY (SDM vol. 1, 8.1.8 and 8.1.9).
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

/// Updates ES and B from the flags and masks.
pub(super) fn update_pending(core: &mut Core) {
    let f = &mut core.fpu;
    f.fsw &= !PENDING;
    if f.fsw & !f.fcw & EXCEPTIONS != 0 {
        f.fsw |= PENDING;
    }
}

/// Returns the last eleven bits of the instruction's two opcode bytes, read again from memory.
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

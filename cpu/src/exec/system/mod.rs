//! System instructions: privileged instructions, far transfers, segments, ports.
//!
//! - [`descriptor`]: descriptors in the GDT and LDT, and accesses with supervisor rights
//! - [`segment`]: loads and stores of segment registers, LAR, LSL, VERR, VERW
//! - [`sized`]: loads of 2, 4 or 8 bytes
//! - [`table`]: GDTR, IDTR, LDTR, TR
//! - [`control`]: control registers
//! - [`debug`]: debug registers, breakpoints, single-stepping
//! - [`flag`]: RFLAGS as a whole, IF and AC
//! - [`far`]: far jumps, calls and returns
//! - [`iret`]: return from an interrupt (IRET)
//! - [`transfer`]: common checks of far jumps, calls, returns and IRET
//! - [`gate`]: INT n, INT3, INT1
//! - [`syscall`]: SYSCALL, SYSENTER and their returns, SWAPGS
//! - [`port`]: IN, OUT, INS, OUTS
//! - [`misc`]: CPUID, MSRs, TSC, HLT, flushes of caches and TLBs
//!
//! `crate::exec::interrupt` delivers exceptions and interrupts. The modelled CPU lacks 32-bit code segments: an
//! instruction that would enter one ends the run.

mod control;
pub(crate) mod debug;
pub(crate) mod descriptor;
mod far;
pub(crate) mod flag;
mod gate;
mod iret;
mod misc;
mod port;
mod segment;
mod sized;
mod syscall;
mod table;
mod transfer;

use crate::core::Core;
use crate::op::operand::{gpr, is_memory};
use crate::op::{Kind, Op};
use crate::state::Unsupported;
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, OpKind};

/// Bit of `Op::aux`: the operand is in memory.
const MEMORY: u16 = 0x100;
/// Mask of the bits of `Op::aux` that hold the operand's width in bytes.
const SIZE: u16 = 0xff;

/// Chooses the handler of a system instruction. Returns `None` for other instructions.
pub(crate) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let families = [
        syscall::lower,
        flag::lower,
        misc::lower,
        port::lower,
        iret::lower,
        gate::lower,
        segment::lower,
        table::lower,
        control::lower,
        debug::lower,
        far::lower,
    ];
    families.iter().find_map(|family| family(i, op))
}

/// Stores operand `n`, which is a register or in memory, in `op`. A register's number goes to `src`; the width, and
/// whether the operand is in memory, go to `aux`.
fn single_operand(i: &Instruction, n: u32, op: &mut Op) {
    if is_memory(i, n) {
        op.aux |= MEMORY | i.memory_size().size() as u16;
    } else {
        op.src = gpr(i.op_register(n));
        op.aux |= i.op_register(n).size() as u16;
    }
}

/// Returns the width of operand `n` in bytes, or 0 if it is not a register.
fn register_size(i: &Instruction, n: u32) -> u16 {
    if i.op_kind(n) == OpKind::Register { i.op_register(n).size() as u16 } else { 0 }
}

/// Raises #GP(0) outside of ring 0.
#[inline(always)]
fn ring0(core: &mut Core) -> Flow {
    if core.cpl == 0 { Ok(()) } else { Err(core.gp()) }
}

/// Writes a general register, for an operand of `size` bytes. A 32-bit write clears the upper half; 8-bit and 16-bit
/// writes keep the other bits.
#[inline(always)]
fn set_register(core: &mut Core, n: u8, size: u16, v: u64) {
    let r = &mut core.regs[(n & 15) as usize];
    *r = match size {
        1 => *r & !0xff | v & 0xff,
        2 => *r & !0xffff | v & 0xffff,
        4 => v & 0xffff_ffff,
        _ => v,
    };
}

/// Reads a 16-bit source operand.
fn source16(core: &mut Core, op: &Op) -> Result<u16, Stop> {
    if op.aux & MEMORY != 0 {
        let va = op.ea(core);
        return core.mem.load::<u16>(va);
    }
    Ok(core.regs[(op.src & 15) as usize] as u16)
}

/// Stores `v` in the operand that [`single_operand`] has filled in. An operand in memory gets only 16 bits.
fn store16(core: &mut Core, op: &Op, v: u64) -> Flow {
    if op.aux & MEMORY != 0 {
        let va = op.ea(core);
        return core.mem.store(va, v as u16);
    }
    set_register(core, op.src, op.aux & SIZE, v);
    Ok(())
}

/// Marks the CPU as dead, because the instruction would enter 32-bit code, which the modelled CPU lacks.
fn code_32_bit(core: &mut Core, op: &Op) -> Stop {
    core.unsupported(Unsupported::Code32Bit);
    core.rip = op.rip(core);
    Stop::Leave
}

/// Handler of an instruction without effects.
fn nothing(_core: &mut Core, _op: &Op) -> Flow {
    Ok(())
}

//! IN, OUT, INS and OUTS, and the permission checks for ports (SDM vol. 1, 19.5).

use super::flag::io_privileged;
use super::{SIZE, set_register};
use crate::core::Core;
use crate::flags::bits;
use crate::mem::Mode;
use crate::mem::mmio::Request;
use crate::op::operand::segment_slot;
use crate::op::{Kind, Op};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, Mnemonic, OpKind};

/// Bit of `Op::aux`: the port is in DX, not in the immediate.
const DX: u16 = 0x200;
/// Bit of `Op::aux`: the instruction is repeated.
const REPEAT: u16 = 0x400;
/// Bit of `Op::aux`: addresses and the count have 32 bits.
const NARROW: u16 = 0x800;

/// Offset of the I/O map base address in a 64-bit TSS.
const TSS_IO_MAP_BASE: u64 = 102;

pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let string = |op: &mut Op, size: u16, index: OpKind| {
        op.aux |= DX | size;
        if i.has_rep_prefix() || i.has_repne_prefix() {
            op.aux |= REPEAT;
        }
        if index == OpKind::MemoryESEDI || index == OpKind::MemorySegESI {
            op.aux |= NARROW;
        }
        op.seg = segment_slot(i.memory_segment());
    };
    match i.mnemonic() {
        Mnemonic::In | Mnemonic::Out => {
            let (accumulator, port) = if i.mnemonic() == Mnemonic::In { (0, 1) } else { (1, 0) };
            op.aux |= i.op_register(accumulator).size() as u16;
            if i.op_kind(port) == OpKind::Register {
                op.aux |= DX;
            } else {
                op.imm = u64::from(i.immediate8());
            }
            op.run = if i.mnemonic() == Mnemonic::In { input } else { output };
            return Some(Kind::Straight);
        }
        Mnemonic::Insb => string(op, 1, i.op0_kind()),
        Mnemonic::Insw => string(op, 2, i.op0_kind()),
        Mnemonic::Insd => string(op, 4, i.op0_kind()),
        Mnemonic::Outsb => string(op, 1, i.op1_kind()),
        Mnemonic::Outsw => string(op, 2, i.op1_kind()),
        Mnemonic::Outsd => string(op, 4, i.op1_kind()),
        _ => return None,
    }
    op.run = match i.mnemonic() {
        Mnemonic::Insb | Mnemonic::Insw | Mnemonic::Insd => input_string,
        _ => output_string,
    };
    Some(Kind::Ends)
}

/// Returns the port. Raises #GP(0) unless the CPL or the I/O permission bitmap of the TSS permits the access.
fn permitted_port(core: &mut Core, op: &Op) -> Result<u16, Stop> {
    let port = if op.aux & DX != 0 { core.regs[2] as u16 } else { op.imm as u16 };
    if io_privileged(core) {
        return Ok(port);
    }
    let limit = u64::from(core.tr.limit);
    let tss = core.tr.base;
    if TSS_IO_MAP_BASE + 1 > limit {
        return Err(core.gp());
    }
    let load16 = |core: &mut Core, at: u64| core.with_mode(Mode::Kernel, |mem| mem.load::<u16>(at));
    let map = u64::from(load16(core, tss.wrapping_add(TSS_IO_MAP_BASE))?);
    // The CPU always reads two bytes of the bitmap, because the bits of one access may be in both.
    let at = map + u64::from(port >> 3);
    if at + 1 > limit {
        return Err(core.gp());
    }
    let word = load16(core, tss.wrapping_add(at))?;
    let wanted = ((1u16 << (op.aux & SIZE)) - 1) << (port & 7);
    if word & wanted != 0 {
        return Err(core.gp());
    }
    Ok(port)
}

fn ask_read(core: &mut Core, port: u16, size: u16) -> Result<u64, Stop> {
    core.mem.mmio.ask(Request::PioRead { port, size: size as u8 }).ok_or(Stop::Exit)
}

fn ask_write(core: &mut Core, port: u16, size: u16, value: u64) -> Flow {
    let value = value as u32 & (u32::MAX >> (32 - 8 * u32::from(size)));
    core.mem.mmio.ask(Request::PioWrite { port, size: size as u8, value }).map(drop).ok_or(Stop::Exit)
}

fn input(core: &mut Core, op: &Op) -> Flow {
    let port = permitted_port(core, op)?;
    let v = ask_read(core, port, op.aux & SIZE)?;
    set_register(core, 0, op.aux & SIZE, v);
    Ok(())
}

fn output(core: &mut Core, op: &Op) -> Flow {
    let port = permitted_port(core, op)?;
    ask_write(core, port, op.aux & SIZE, core.regs[0])
}

/// Returns a register value, truncated to the size of addresses and counts.
fn narrowed(op: &Op, v: u64) -> u64 {
    if op.aux & NARROW != 0 { v & 0xffff_ffff } else { v }
}

/// True if a repeated instruction has no iterations left.
fn exhausted(core: &Core, op: &Op) -> bool {
    op.aux & REPEAT != 0 && narrowed(op, core.regs[1]) == 0
}

/// Finishes an iteration: advances the index register and decrements the count. If iterations are left, RIP stays at
/// the instruction.
fn advance(core: &mut Core, op: &Op, index: usize) -> Flow {
    let size = u64::from(op.aux & SIZE);
    let step = if core.rflags & bits::DF != 0 { size.wrapping_neg() } else { size };
    core.regs[index] = narrowed(op, core.regs[index].wrapping_add(step));
    if op.aux & REPEAT != 0 {
        core.regs[1] = narrowed(op, core.regs[1].wrapping_sub(1));
        if core.regs[1] != 0 {
            core.rip = op.rip(core);
        }
    }
    Err(Stop::Leave)
}

/// INS. It checks that the destination is writable before it reads the port, because reading a port can have side
/// effects.
fn input_string(core: &mut Core, op: &Op) -> Flow {
    let port = permitted_port(core, op)?;
    if exhausted(core, op) {
        return Ok(());
    }
    let size = op.aux & SIZE;
    let va = narrowed(op, core.regs[7]);
    core.mem.probe_write(va, u64::from(size))?;
    let v = ask_read(core, port, size)?;
    match size {
        1 => core.mem.store(va, v as u8)?,
        2 => core.mem.store(va, v as u16)?,
        _ => core.mem.store(va, v as u32)?,
    }
    advance(core, op, 7)
}

fn output_string(core: &mut Core, op: &Op) -> Flow {
    let port = permitted_port(core, op)?;
    if exhausted(core, op) {
        return Ok(());
    }
    let size = op.aux & SIZE;
    let va = narrowed(op, core.regs[6]).wrapping_add(core.regs[(op.seg & 31) as usize]);
    let v = match size {
        1 => u64::from(core.mem.load::<u8>(va)?),
        2 => u64::from(core.mem.load::<u16>(va)?),
        _ => u64::from(core.mem.load::<u32>(va)?),
    };
    ask_write(core, port, size, v)?;
    advance(core, op, 6)
}

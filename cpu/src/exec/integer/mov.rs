//! Moves: MOV, MOVBE, MOVZX, MOVSX, MOVSXD, LEA, XLAT.

use super::width::Width;
use super::{by_memory, by_width};
use crate::core::Core;
use crate::op::operand::{gpr, is_gpr, is_immediate, is_memory, is_near, width};
use crate::op::{Address, Handler, Kind, Op, slot};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

fn reg_reg<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let v = W::read(core, op.src);
    W::write(core, op.dst, v);
    Ok(())
}
fn reg_imm<W: Width>(core: &mut Core, op: &Op) -> Flow {
    W::write(core, op.dst, op.imm);
    Ok(())
}
fn reg_mem<W: Width, A: Address>(core: &mut Core, op: &Op) -> Flow {
    let v = core.mem.load::<W>(A::of(core, op))?;
    W::write(core, op.dst, v.to_u64());
    Ok(())
}
fn mem_reg<W: Width, A: Address>(core: &mut Core, op: &Op) -> Flow {
    let v = W::from_u64(W::read(core, op.src));
    core.mem.store(A::of(core, op), v)
}
fn mem_imm<W: Width, A: Address>(core: &mut Core, op: &Op) -> Flow {
    core.mem.store(A::of(core, op), W::from_u64(op.imm))
}

/// MOV to the accumulator from the 64-bit absolute address in `Op::imm`.
fn load_absolute<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let va = op.imm.wrapping_add(core.regs[(op.seg & 31) as usize]);
    let v = core.mem.load::<W>(va)?;
    W::write(core, 0, v.to_u64());
    Ok(())
}
/// MOV from the accumulator to the 64-bit absolute address in `Op::imm`.
fn store_absolute<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let va = op.imm.wrapping_add(core.regs[(op.seg & 31) as usize]);
    let v = W::from_u64(core.regs[0]);
    core.mem.store(va, v)
}

/// Zero extension of a register from `S` to `D`.
fn zx_reg<D: Width, S: Width>(core: &mut Core, op: &Op) -> Flow {
    let v = S::read(core, op.src);
    D::write(core, op.dst, v);
    Ok(())
}
/// Zero extension of memory from `S` to `D`, which has 16 or 32 bits. 64-bit destinations also use a `D` of 32 bits,
/// because a 32-bit write clears the upper half of the register.
fn zx_mem<S: Width, A: Address, D: Width>(core: &mut Core, op: &Op) -> Flow {
    let v = core.mem.load::<S>(A::of(core, op))?.to_u64();
    D::write(core, op.dst, v);
    Ok(())
}
fn sx_reg<D: Width, S: Width>(core: &mut Core, op: &Op) -> Flow {
    let v = S::sext(S::read(core, op.src));
    D::write(core, op.dst, v);
    Ok(())
}
fn sx_mem<S: Width, A: Address, D: Width>(core: &mut Core, op: &Op) -> Flow {
    let v = S::sext(core.mem.load::<S>(A::of(core, op))?.to_u64());
    D::write(core, op.dst, v);
    Ok(())
}

fn lea<W: Width>(core: &mut Core, op: &Op) -> Flow {
    let v = op.offset(core);
    W::write(core, op.dst, v);
    Ok(())
}
fn lea_near(core: &mut Core, op: &Op) -> Flow {
    core.regs[(op.dst & 15) as usize] =
        core.regs[(op.base & 31) as usize].wrapping_add(op.disp as i64 as u64);
    Ok(())
}
/// Reverses the bytes of a value of this width.
#[inline(always)]
fn reversed<W: Width>(v: u64) -> u64 {
    v.swap_bytes() >> (u64::BITS - W::BITS)
}
fn load_reversed<W: Width, A: Address>(core: &mut Core, op: &Op) -> Flow {
    let v = core.mem.load::<W>(A::of(core, op))?;
    W::write(core, op.dst, reversed::<W>(v.to_u64()));
    Ok(())
}
fn store_reversed<W: Width, A: Address>(core: &mut Core, op: &Op) -> Flow {
    let v = reversed::<W>(W::read(core, op.src));
    core.mem.store(A::of(core, op), W::from_u64(v))
}
fn lower_movbe(i: &Instruction, op: &mut Op) -> Handler {
    if is_memory(i, 0) {
        op.src = gpr(i.op1_register());
        return by_memory!(op, width(i, 0), store_reversed);
    }
    op.dst = gpr(i.op0_register());
    by_memory!(op, width(i, 0), load_reversed)
}

fn xlat(core: &mut Core, op: &Op) -> Flow {
    let offset = core.regs[3].wrapping_add(core.regs[0] & 0xff);
    let offset = if op.imm != 0 { offset & 0xffff_ffff } else { offset };
    let v = core.mem.load::<u8>(offset.wrapping_add(core.regs[(op.seg & 31) as usize]))?;
    u8::write(core, 0, v.to_u64());
    Ok(())
}

fn lower_mov(i: &Instruction, op: &mut Op) -> Option<Handler> {
    let w = width(i, 0);
    let absolute =
        i.memory_base() == iced_x86::Register::None && i.memory_index() == iced_x86::Register::None;
    let displacement = i.memory_displacement64();
    // True for a 64-bit absolute address that does not fit into `Op::disp`. A 32-bit address always fits: `Op::offset`
    // sign-extends it, and then keeps only the lower 32 bits.
    let wide = absolute && i.memory_displ_size() == 8 && displacement != displacement as i32 as u64;
    let far = |n| wide && is_memory(i, n);
    if is_memory(i, 0) {
        if is_immediate(i, 1) {
            op.imm = i.immediate(1);
            return Some(by_memory!(op, w, mem_imm));
        }
        if !is_gpr(i, 1) {
            return None;
        }
        if far(0) {
            op.imm = i.memory_displacement64();
            return Some(by_width!(w, store_absolute));
        }
        op.src = gpr(i.op1_register());
        return Some(by_memory!(op, w, mem_reg));
    }
    if !is_gpr(i, 0) {
        return None;
    }
    op.dst = gpr(i.op0_register());
    if is_immediate(i, 1) {
        op.imm = i.immediate(1);
        return Some(by_width!(w, reg_imm));
    }
    if is_memory(i, 1) {
        if far(1) {
            op.imm = i.memory_displacement64();
            return Some(by_width!(w, load_absolute));
        }
        return Some(by_memory!(op, w, reg_mem));
    }
    if !is_gpr(i, 1) {
        return None;
    }
    op.src = gpr(i.op1_register());
    Some(by_width!(w, reg_reg))
}

/// Chooses the handler of MOVZX, MOVSX or MOVSXD by source and destination width.
fn lower_extend(i: &Instruction, op: &mut Op, signed: bool) -> Handler {
    op.dst = gpr(i.op0_register());
    let dst = width(i, 0);
    let src = width(i, 1);
    if is_memory(i, 1) {
        return match (signed, dst) {
            (false, 2) => by_memory!(op, src, zx_mem, u16),
            (false, _) => by_memory!(op, src, zx_mem, u32),
            (true, 2) => by_memory!(op, src, sx_mem, u16),
            (true, 4) => by_memory!(op, src, sx_mem, u32),
            (true, _) => by_memory!(op, src, sx_mem, u64),
        };
    }
    op.src = gpr(i.op1_register());
    match (signed, src) {
        (false, 1) => by_width!(dst, zx_reg, u8),
        (false, 2) => by_width!(dst, zx_reg, u16),
        (false, _) => by_width!(dst, zx_reg, u32),
        (true, 1) => by_width!(dst, sx_reg, u8),
        (true, 2) => by_width!(dst, sx_reg, u16),
        (true, _) => by_width!(dst, sx_reg, u32),
    }
}

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    op.run = match i.mnemonic() {
        Mnemonic::Mov => lower_mov(i, op)?,
        Mnemonic::Movbe => lower_movbe(i, op),
        Mnemonic::Movzx => lower_extend(i, op, false),
        Mnemonic::Movsx | Mnemonic::Movsxd => lower_extend(i, op, true),
        Mnemonic::Lea => {
            op.dst = gpr(i.op0_register());
            op.seg = slot::ZERO;
            if width(i, 0) == 8 && is_near(op) { lea_near } else { by_width!(i.op0_register().size(), lea) }
        }
        Mnemonic::Xlatb => {
            op.seg = crate::op::operand::segment_slot(i.memory_segment());
            op.imm = u64::from(i.memory_base() == iced_x86::Register::EBX);
            xlat
        }
        _ => return None,
    };
    Some(Kind::Straight)
}

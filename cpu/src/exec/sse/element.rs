//! Insertion and extraction of single elements, and PTEST.

use super::lanes::element;
use super::operand::{
    enter_mmx, handler, load, mm, mmx_usable, set_mm, set_xmm, to_gpr, usable, xmm, xmm_op,
};
use super::shuffle;
use crate::core::Core;
use crate::flags::{Flags, bits};
use crate::mem::Prim;
use crate::op::operand::is_memory;
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let mmx = i.op_register(0).is_mm() || i.op_register(1).is_mm();
    let (store, from_memory) = (is_memory(i, 0), is_memory(i, 1));
    use Mnemonic::*;
    match i.mnemonic() {
        Pextrw if mmx => to_gpr!(op, mm, |o, b| b >> (16 * (o.imm & 3)) & 0xffff),
        Pextrb => extract::<8, u8>(op, store),
        Pextrw => extract::<16, u16>(op, store),
        Pextrd | Extractps => extract::<32, u32>(op, store),
        Pextrq => extract::<64, u64>(op, store),
        Pinsrw if mmx && from_memory => handler!(op, |core, o| {
            mmx_usable(core)?;
            let v = load::<u16>(core, o)? as u64;
            insert_mm(core, o, v)
        }),
        Pinsrw if mmx => handler!(op, |core, o| {
            mmx_usable(core)?;
            let v = core.regs[(o.src & 15) as usize];
            insert_mm(core, o, v)
        }),
        Pinsrb => insert::<8, u8>(op, from_memory),
        Pinsrw => insert::<16, u16>(op, from_memory),
        Pinsrd => insert::<32, u32>(op, from_memory),
        Pinsrq => insert::<64, u64>(op, from_memory),
        Insertps if from_memory => xmm_op!(i, op, u32, |c, o, a, b| shuffle::insertps(a, b as u64, o.imm)),
        Insertps => xmm_op!(i, op, u32, |c, o, a, b| {
            shuffle::insertps(a, element::<32>(b, o.imm as u32 >> 6 & 3) as u64, o.imm)
        }),
        Ptest => xmm_op!(i, op, u128, |c, o, a, b| {
            let zf = if a & b == 0 { bits::ZF } else { 0 };
            let cf = if !a & b == 0 { bits::CF } else { 0 };
            c.flags = Flags::from_bits(zf | cf);
            a
        }),
        _ => None,
    }
}

fn extract<const BITS: u32, T: Prim>(op: &mut Op, store: bool) -> Option<Kind> {
    fn reg<const BITS: u32>(core: &mut Core, op: &Op) -> Flow {
        usable(core)?;
        let v = element::<BITS>(xmm(core, op.src), op.imm as u32 % (128 / BITS));
        core.regs[(op.dst & 15) as usize] = v as u64;
        Ok(())
    }
    fn mem<const BITS: u32, T: Prim>(core: &mut Core, op: &Op) -> Flow {
        usable(core)?;
        let v = element::<BITS>(xmm(core, op.src), op.imm as u32 % (128 / BITS));
        let va = op.ea(core);
        core.mem.store(va, T::narrow(v))
    }
    op.run = if store { mem::<BITS, T> } else { reg::<BITS> };
    Some(Kind::Straight)
}

fn insert<const BITS: u32, T: Prim>(op: &mut Op, from_memory: bool) -> Option<Kind> {
    fn reg<const BITS: u32>(core: &mut Core, op: &Op) -> Flow {
        usable(core)?;
        let v = core.regs[(op.src & 15) as usize];
        let r = shuffle::insert::<BITS>(xmm(core, op.dst), v, op.imm);
        set_xmm(core, op.dst, r);
        Ok(())
    }
    fn mem<const BITS: u32, T: Prim>(core: &mut Core, op: &Op) -> Flow {
        usable(core)?;
        let v = load::<T>(core, op)? as u64;
        let r = shuffle::insert::<BITS>(xmm(core, op.dst), v, op.imm);
        set_xmm(core, op.dst, r);
        Ok(())
    }
    op.run = if from_memory { mem::<BITS, T> } else { reg::<BITS> };
    Some(Kind::Straight)
}

fn insert_mm(core: &mut Core, op: &Op, v: u64) -> Flow {
    let r = shuffle::insert::<16>(u128::from(mm(core, op.dst)), v, op.imm & 3);
    set_mm(core, op.dst, r as u64);
    Ok(())
}

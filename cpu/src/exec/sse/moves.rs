//! Moves of whole registers, halves and scalars, moves to and from general registers, and masked and non-temporal
//! stores.

use super::operand::{
    enter_mmx, handler, load, merge, mm, mm_op, mmx_usable, set_mm, set_xmm, usable, xmm, xmm_op,
};
use crate::core::Core;
use crate::mem::Prim;
use crate::op::operand::{gpr, is_gpr, is_memory, is_near, segment_slot, width};
use crate::op::{ADDRESS_32, Address, Full, Kind, Near, Op, slot};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

const LOW: u128 = u64::MAX as u128;

/// Chooses the handler of a move. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let (to_memory, from_memory) = (is_memory(i, 0), is_memory(i, 1));
    let near = is_near(op);
    macro_rules! near_or_full {
        ($f:ident $(, $t:ty)*) => {{
            op.run = if near { $f::<Near $(, $t)*> } else { $f::<Full $(, $t)*> };
            Some(Kind::Straight)
        }};
    }
    macro_rules! run {
        ($f:expr) => {{
            op.run = $f;
            Some(Kind::Straight)
        }};
    }
    use Mnemonic::*;
    match i.mnemonic() {
        Movups | Movupd | Movdqu | Lddqu => match (to_memory, from_memory) {
            (true, _) => near_or_full!(store_any),
            (_, true) => near_or_full!(load_any),
            _ => run!(copy),
        },
        Movaps | Movapd | Movdqa | Movntdqa | Movntps | Movntpd | Movntdq => match (to_memory, from_memory) {
            (true, _) => near_or_full!(store_all),
            (_, true) => near_or_full!(load_all),
            _ => run!(copy),
        },
        Movss => match (to_memory, from_memory) {
            (true, _) => near_or_full!(store_low, u32),
            (_, true) => near_or_full!(load_low, u32),
            _ => handler!(op, |core, o| {
                usable(core)?;
                let r = merge::<32>(xmm(core, o.dst), xmm(core, o.src));
                set_xmm(core, o.dst, r);
                Ok(())
            }),
        },
        Movsd => match (to_memory, from_memory) {
            (true, _) => near_or_full!(store_low, u64),
            (_, true) => near_or_full!(load_low, u64),
            _ => handler!(op, |core, o| {
                usable(core)?;
                let r = merge::<64>(xmm(core, o.dst), xmm(core, o.src));
                set_xmm(core, o.dst, r);
                Ok(())
            }),
        },
        Movlps | Movlpd if to_memory => near_or_full!(store_low, u64),
        Movlps | Movlpd => xmm_op!(i, op, u64, |c, o, a, b| merge::<64>(a, b)),
        Movhps | Movhpd if to_memory => handler!(op, |core, o| {
            usable(core)?;
            let va = o.ea(core);
            let v = (xmm(core, o.src) >> 64) as u64;
            core.mem.store(va, v)
        }),
        Movhps | Movhpd | Movlhps => xmm_op!(i, op, u64, |c, o, a, b| a & LOW | b << 64),
        Movhlps => xmm_op!(i, op, u64, |c, o, a, b| a & !LOW | b >> 64),
        Movddup => xmm_op!(i, op, u64, |c, o, a, b| b & LOW | b << 64),
        Movsldup => xmm_op!(i, op, u128, |c, o, a, b| {
            let low = b & 0x0000_0000_ffff_ffff_0000_0000_ffff_ffff;
            low | low << 32
        }),
        Movshdup => xmm_op!(i, op, u128, |c, o, a, b| {
            let high = b & 0xffff_ffff_0000_0000_ffff_ffff_0000_0000;
            high | high >> 32
        }),
        Movd | Movq => lower_movq(i, op),
        Movq2dq => handler!(op, |core, o| {
            usable(core)?;
            mmx_usable(core)?;
            let v = u128::from(mm(core, o.src));
            enter_mmx(core);
            set_xmm(core, o.dst, v);
            Ok(())
        }),
        Movdq2q => handler!(op, |core, o| {
            usable(core)?;
            mmx_usable(core)?;
            let v = xmm(core, o.src) as u64;
            set_mm(core, o.dst, v);
            Ok(())
        }),
        Movntq => run!(store_mm::<u64>),
        Movnti if width(i, 1) == 8 => run!(store_gpr::<u64>),
        Movnti => run!(store_gpr::<u32>),
        Maskmovdqu => handler!(op, |core, o| {
            usable(core)?;
            let (v, mask) = (xmm(core, o.dst), xmm(core, o.src));
            store_masked(core, o, v, mask)
        }),
        Maskmovq => handler!(op, |core, o| {
            mmx_usable(core)?;
            let (v, mask) = (u128::from(mm(core, o.dst)), u128::from(mm(core, o.src)));
            store_masked(core, o, v, mask)?;
            enter_mmx(core);
            Ok(())
        }),
        _ => None,
    }
}

/// Chooses the handler of MOVD and MOVQ between XMM or MMX registers, memory and general registers. With REX.W, the
/// decoder's mnemonic is MOVQ for both.
fn lower_movq(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let wide = i.mnemonic() == Mnemonic::Movq;
    let mmx = i.op_register(0).is_mm() || i.op_register(1).is_mm();
    let near = is_near(op);
    op.run = match (mmx, wide, is_memory(i, 0), is_memory(i, 1)) {
        (true, true, true, _) => store_mm::<u64>,
        (true, false, true, _) => store_mm::<u32>,
        (true, true, _, true) => load_mm::<u64>,
        (true, false, _, true) => load_mm::<u32>,
        (true, ..) if is_gpr(i, 0) && wide => mm_to_gpr::<u64>,
        (true, ..) if is_gpr(i, 0) => mm_to_gpr::<u32>,
        (true, ..) if is_gpr(i, 1) && wide => gpr_to_mm::<u64>,
        (true, ..) if is_gpr(i, 1) => gpr_to_mm::<u32>,
        (true, ..) => return mm_op!(i, op, u64, |c, o, a, b| b),
        (false, true, true, _) if near => store_low::<Near, u64>,
        (false, true, true, _) => store_low::<Full, u64>,
        (false, false, true, _) => store_low::<Full, u32>,
        (false, true, _, true) if near => load_low::<Near, u64>,
        (false, true, _, true) => load_low::<Full, u64>,
        (false, false, _, true) => load_low::<Full, u32>,
        _ if is_gpr(i, 0) && wide => xmm_to_gpr::<u64>,
        _ if is_gpr(i, 0) => xmm_to_gpr::<u32>,
        _ if is_gpr(i, 1) && wide => gpr_to_xmm::<u64>,
        _ if is_gpr(i, 1) => gpr_to_xmm::<u32>,
        _ => return xmm_op!(i, op, u64, |c, o, a, b| b & LOW),
    };
    Some(Kind::Straight)
}

fn copy(core: &mut Core, op: &Op) -> Flow {
    usable(core)?;
    let v = xmm(core, op.src);
    set_xmm(core, op.dst, v);
    Ok(())
}

fn load_any<A: Address>(core: &mut Core, op: &Op) -> Flow {
    usable(core)?;
    let va = A::of(core, op);
    let v = core.mem.load::<u128>(va)?;
    set_xmm(core, op.dst, v);
    Ok(())
}

fn load_all<A: Address>(core: &mut Core, op: &Op) -> Flow {
    usable(core)?;
    let va = A::of(core, op);
    if va & 15 != 0 {
        return Err(core.gp());
    }
    let v = core.mem.load::<u128>(va)?;
    set_xmm(core, op.dst, v);
    Ok(())
}

fn load_low<A: Address, T: Prim>(core: &mut Core, op: &Op) -> Flow {
    usable(core)?;
    let va = A::of(core, op);
    let v = core.mem.load::<T>(va)?;
    set_xmm(core, op.dst, v.widen());
    Ok(())
}

fn store_any<A: Address>(core: &mut Core, op: &Op) -> Flow {
    usable(core)?;
    let va = A::of(core, op);
    let v = xmm(core, op.src);
    core.mem.store(va, v)
}

fn store_all<A: Address>(core: &mut Core, op: &Op) -> Flow {
    usable(core)?;
    let va = A::of(core, op);
    if va & 15 != 0 {
        return Err(core.gp());
    }
    let v = xmm(core, op.src);
    core.mem.store(va, v)
}

fn store_low<A: Address, T: Prim>(core: &mut Core, op: &Op) -> Flow {
    usable(core)?;
    let va = A::of(core, op);
    let v = T::narrow(xmm(core, op.src));
    core.mem.store(va, v)
}

fn xmm_to_gpr<T: Prim>(core: &mut Core, op: &Op) -> Flow {
    usable(core)?;
    core.regs[(op.dst & 15) as usize] = T::narrow(xmm(core, op.src)).widen() as u64;
    Ok(())
}

fn gpr_to_xmm<T: Prim>(core: &mut Core, op: &Op) -> Flow {
    usable(core)?;
    let v = T::narrow(u128::from(core.regs[(op.src & 15) as usize]));
    set_xmm(core, op.dst, v.widen());
    Ok(())
}

fn mm_to_gpr<T: Prim>(core: &mut Core, op: &Op) -> Flow {
    mmx_usable(core)?;
    enter_mmx(core);
    core.regs[(op.dst & 15) as usize] = T::narrow(u128::from(mm(core, op.src))).widen() as u64;
    Ok(())
}

fn gpr_to_mm<T: Prim>(core: &mut Core, op: &Op) -> Flow {
    mmx_usable(core)?;
    let v = T::narrow(u128::from(core.regs[(op.src & 15) as usize]));
    set_mm(core, op.dst, v.widen() as u64);
    Ok(())
}

fn load_mm<T: Prim>(core: &mut Core, op: &Op) -> Flow {
    mmx_usable(core)?;
    let v = load::<T>(core, op)?;
    set_mm(core, op.dst, v as u64);
    Ok(())
}

fn store_mm<T: Prim>(core: &mut Core, op: &Op) -> Flow {
    mmx_usable(core)?;
    let va = op.ea(core);
    let v = T::narrow(u128::from(mm(core, op.src)));
    core.mem.store(va, v)?;
    enter_mmx(core);
    Ok(())
}

fn store_gpr<T: Prim>(core: &mut Core, op: &Op) -> Flow {
    let va = op.ea(core);
    let v = T::narrow(u128::from(core.regs[(op.src & 15) as usize]));
    core.mem.store(va, v)
}

/// MASKMOVDQU, VMASKMOVDQU and MASKMOVQ: stores each byte whose mask byte has its top bit set. The manual leaves open whether an
/// instruction with an empty mask faults; here it does not.
pub(crate) fn store_masked(core: &mut Core, op: &Op, v: u128, mask: u128) -> Flow {
    let va = op.ea(core);
    let chosen = |n: u64| mask >> (8 * n + 7) & 1 != 0;
    for n in (0..16).filter(|&n| chosen(n)) {
        core.mem.probe_write(va.wrapping_add(n), 1)?;
    }
    for n in (0..16).filter(|&n| chosen(n)) {
        core.mem.store(va.wrapping_add(n), (v >> (8 * n)) as u8)?;
    }
    Ok(())
}

/// Stores the implied memory operand of MASKMOVDQU and MASKMOVQ in `op`: DS:RDI, as modified by prefixes.
pub(crate) fn masked_operand(i: &Instruction, op: &mut Op) {
    op.base = gpr(Register::RDI);
    op.index = slot::ZERO;
    op.disp = 0;
    op.scale = if i.op_kind(0) == OpKind::MemorySegEDI { ADDRESS_32 } else { 0 };
    op.seg = segment_slot(i.memory_segment());
    op.dst = i.op_register(1).number() as u8;
    op.src = i.op_register(2).number() as u8;
}

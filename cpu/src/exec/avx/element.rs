//! Insertion and extraction of single elements and halves, and conversions from general registers.

use super::operand::{handler, immediate, in_memory, other, rm, set, set_ymm, store, ymm};
use crate::core::Core;
use crate::exec::sse::convert::{Double32, Double64, FromInteger, Single32, Single64};
use crate::exec::sse::lanes::element;
use crate::exec::sse::shuffle;
use crate::mem::Prim;
use crate::op::operand::{gpr, is_gpr, is_memory, width};
use crate::op::{Kind, Op};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, Mnemonic};

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    if is_gpr(i, 0) {
        op.dst = gpr(i.op0_register());
    }
    if is_gpr(i, 2) {
        op.src = gpr(i.op2_register());
    }
    let wide_source = width(i, 2) == 8;
    match i.mnemonic() {
        Vpextrb => handler!(op, |core, o| extract::<8, u8>(core, o)),
        Vpextrw => handler!(op, |core, o| extract::<16, u16>(core, o)),
        Vpextrd | Vextractps => handler!(op, |core, o| extract::<32, u32>(core, o)),
        Vpextrq => handler!(op, |core, o| extract::<64, u64>(core, o)),
        Vpinsrb => handler!(op, |core, o| insert::<8>(core, o)),
        Vpinsrw => handler!(op, |core, o| insert::<16>(core, o)),
        Vpinsrd => handler!(op, |core, o| insert::<32>(core, o)),
        Vpinsrq => handler!(op, |core, o| insert::<64>(core, o)),
        Vinsertps => handler!(op, |core, o| {
            let b = rm(core, o)?[0];
            let imm = immediate(o);
            // An operand in memory is the element itself.
            let from = if in_memory(o) { 0 } else { imm as u32 >> 6 & 3 };
            let r = shuffle::insertps(other(core, o)[0], element::<32>(b, from) as u64, imm);
            set_ymm(core, o.dst, [r, 0]);
            Ok(())
        }),
        Vextractf128 | Vextracti128 if is_memory(i, 0) => handler!(op, |core, o| {
            let v = ymm(core, o.src)[(o.imm & 1) as usize];
            let va = o.ea(core);
            store(core, va, [v, 0], false)
        }),
        Vextractf128 | Vextracti128 => handler!(op, |core, o| {
            let v = ymm(core, o.src)[(o.imm & 1) as usize];
            set_ymm(core, o.dst, [v, 0]);
            Ok(())
        }),
        Vinsertf128 | Vinserti128 => handler!(op, |core, o| {
            let b = rm(core, o)?[0];
            let mut r = other(core, o);
            r[(o.imm & 1) as usize] = b;
            set(core, o, r);
            Ok(())
        }),
        Vcvtsi2sd if wide_source => handler!(op, |core, o| converted::<Double64>(core, o)),
        Vcvtsi2sd => handler!(op, |core, o| converted::<Double32>(core, o)),
        Vcvtsi2ss if wide_source => handler!(op, |core, o| converted::<Single64>(core, o)),
        Vcvtsi2ss => handler!(op, |core, o| converted::<Single32>(core, o)),
        _ => None,
    }
}

/// Returns the source in a general register or in memory. The upper bits of a register are not cut off.
fn source(core: &mut Core, op: &Op) -> Result<u64, Stop> {
    if in_memory(op) { Ok(rm(core, op)?[0] as u64) } else { Ok(core.regs[usize::from(op.src & 15)]) }
}

fn extract<const BITS: u32, T: Prim>(core: &mut Core, op: &Op) -> Flow {
    let v = element::<BITS>(ymm(core, op.src)[0], immediate(op) as u32 % (128 / BITS));
    if in_memory(op) {
        let va = op.ea(core);
        return core.mem.store(va, T::narrow(v));
    }
    core.regs[usize::from(op.dst & 15)] = v as u64;
    Ok(())
}

fn insert<const BITS: u32>(core: &mut Core, op: &Op) -> Flow {
    let v = source(core, op)?;
    let r = shuffle::insert::<BITS>(other(core, op)[0], v, immediate(op));
    set_ymm(core, op.dst, [r, 0]);
    Ok(())
}

fn converted<C: FromInteger>(core: &mut Core, op: &Op) -> Flow {
    let v = source(core, op)?;
    let r = C::convert(core, other(core, op)[0], v)?;
    set_ymm(core, op.dst, [r, 0]);
    Ok(())
}

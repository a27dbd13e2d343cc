//! Moves of whole registers, halves and scalars, moves to and from general registers, VZEROUPPER, and MXCSR.

use super::operand::{Ymm, handler, in_memory, other, rm, set, set_ymm, store, wide, ymm};
use crate::core::Core;
use crate::exec::sse::fxsave;
use crate::op::operand::{gpr, is_gpr, is_memory, width};
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

const LOW: u128 = u64::MAX as u128;

/// Chooses the handler of a move. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    let stores = is_memory(i, 0);
    match i.mnemonic() {
        Vmovups | Vmovupd | Vmovdqu | Vlddqu if stores => handler!(op, |core, o| store_any(core, o)),
        Vmovaps | Vmovapd | Vmovdqa | Vmovntps | Vmovntpd | Vmovntdq if stores => handler!(op, |core, o| {
            aligned(core, o)?;
            store_any(core, o)
        }),
        Vmovups | Vmovupd | Vmovdqu | Vlddqu => handler!(op, |core, o| load(core, o)),
        Vmovaps | Vmovapd | Vmovdqa | Vmovntdqa => handler!(op, |core, o| {
            aligned(core, o)?;
            load(core, o)
        }),
        Vmovss if stores => handler!(op, |core, o| store_low::<u32>(core, o)),
        Vmovd if stores => handler!(op, |core, o| store_low::<u32>(core, o)),
        Vmovsd | Vmovq | Vmovlps | Vmovlpd if stores => handler!(op, |core, o| store_low::<u64>(core, o)),
        Vmovss | Vmovsd if is_memory(i, 1) => handler!(op, |core, o| load(core, o)),
        Vmovss => handler!(op, |core, o| combine(core, o, |a, b| a & !0xffff_ffff | b & 0xffff_ffff)),
        Vmovsd | Vmovlps | Vmovlpd => handler!(op, |core, o| combine(core, o, |a, b| a & !LOW | b & LOW)),
        Vmovhps | Vmovhpd if stores => handler!(op, |core, o| {
            let va = o.ea(core);
            let v = (ymm(core, o.src)[0] >> 64) as u64;
            core.mem.store(va, v)
        }),
        Vmovhps | Vmovhpd | Vmovlhps => handler!(op, |core, o| combine(core, o, |a, b| a & LOW | b << 64)),
        Vmovhlps => handler!(op, |core, o| combine(core, o, |a, b| a & !LOW | b >> 64)),
        Vmovd | Vmovq if is_gpr(i, 0) => {
            op.dst = gpr(i.op0_register());
            if width(i, 0) == 8 {
                handler!(op, |core, o| to_general(core, o, |v| v[0] as u64))
            } else {
                handler!(op, |core, o| to_general(core, o, |v| u64::from(v[0] as u32)))
            }
        }
        Vmovd | Vmovq if is_gpr(i, 1) => {
            op.src = gpr(i.op1_register());
            if width(i, 1) == 8 {
                handler!(op, |core, o| from_general(core, o, u64::MAX))
            } else {
                handler!(op, |core, o| from_general(core, o, u64::from(u32::MAX)))
            }
        }
        Vmovd | Vmovq => handler!(op, |core, o| {
            let v = rm(core, o)?[0] & LOW;
            set(core, o, [v, 0]);
            Ok(())
        }),
        Vmovmskps => handler!(op, |core, o| to_general(core, o, signs::<32>)),
        Vmovmskpd => handler!(op, |core, o| to_general(core, o, signs::<64>)),
        Vpmovmskb => handler!(op, |core, o| to_general(core, o, signs::<8>)),
        Vzeroupper => handler!(op, |core, _o| {
            core.ymm = [0; 16];
            Ok(())
        }),
        Vzeroall => handler!(op, |core, _o| {
            (core.ymm, core.fpu.xmm) = ([0; 16], [0; 16]);
            Ok(())
        }),
        Vldmxcsr => handler!(op, |core, o| fxsave::load_mxcsr(core, o)),
        Vstmxcsr => handler!(op, |core, o| fxsave::store_mxcsr(core, o)),
        _ => None,
    }
}

/// Raises #GP if a memory operand of 16 or 32 bytes is not aligned to its size.
fn aligned(core: &mut Core, op: &Op) -> Flow {
    let mask = if wide(op) { 31 } else { 15 };
    if in_memory(op) && op.ea(core) & mask != 0 { Err(core.gp()) } else { Ok(()) }
}

fn load(core: &mut Core, op: &Op) -> Flow {
    let v = rm(core, op)?;
    set(core, op, v);
    Ok(())
}

fn store_any(core: &mut Core, op: &Op) -> Flow {
    let va = op.ea(core);
    let v = ymm(core, op.src);
    store(core, va, v, wide(op))
}

fn store_low<T: crate::mem::Prim>(core: &mut Core, op: &Op) -> Flow {
    let va = op.ea(core);
    let v = T::narrow(ymm(core, op.src)[0]);
    core.mem.store(va, v)
}

/// Writes a combination of `other` and `rm`, of 128 bits.
#[inline(always)]
fn combine(core: &mut Core, op: &Op, f: impl Fn(u128, u128) -> u128) -> Flow {
    let b = rm(core, op)?[0];
    let a = other(core, op)[0];
    set_ymm(core, op.dst, [f(a, b), 0]);
    Ok(())
}

/// Writes a general register.
#[inline(always)]
fn to_general(core: &mut Core, op: &Op, f: impl Fn(Ymm) -> u64) -> Flow {
    let [low, high] = ymm(core, op.src);
    let high = if wide(op) { high } else { 0 };
    core.regs[usize::from(op.dst & 15)] = f([low, high]);
    Ok(())
}

fn from_general(core: &mut Core, op: &Op, mask: u64) -> Flow {
    let v = core.regs[usize::from(op.src & 15)] & mask;
    set_ymm(core, op.dst, [u128::from(v), 0]);
    Ok(())
}

/// Returns the top bits of elements of `BITS` bits.
fn signs<const BITS: u32>(v: Ymm) -> u64 {
    let of = |x: u128| (0..128 / BITS).fold(0, |r, n| r | ((x >> (BITS * n + BITS - 1)) as u64 & 1) << n);
    of(v[0]) | of(v[1]) << (128 / BITS)
}

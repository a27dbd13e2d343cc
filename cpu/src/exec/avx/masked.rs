//! Masked loads and stores: VMASKMOVPS, VMASKMOVPD, VPMASKMOVD, VPMASKMOVQ and VMASKMOVDQU. Elements that the mask does
//! not select are neither accessed nor checked (SDM vol. 2C, VMASKMOV).

use super::operand::{Ymm, handler, other, set, unchecked, wide, ymm};
use crate::core::Core;
use crate::exec::sse::moves::{masked_operand, store_masked};
use crate::mem::Prim;
use crate::op::operand::is_memory;
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

/// Chooses the handler of a masked move. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    match (i.mnemonic(), is_memory(i, 0)) {
        (Vmaskmovps | Vpmaskmovd, true) => {
            handler!(op, |core, o| unchecked(core, |core| store::<u32>(core, o)))
        }
        (Vmaskmovps | Vpmaskmovd, false) => {
            handler!(op, |core, o| unchecked(core, |core| load::<u32>(core, o)))
        }
        (Vmaskmovpd | Vpmaskmovq, true) => {
            handler!(op, |core, o| unchecked(core, |core| store::<u64>(core, o)))
        }
        (Vmaskmovpd | Vpmaskmovq, false) => {
            handler!(op, |core, o| unchecked(core, |core| load::<u64>(core, o)))
        }
        (Vmaskmovdqu, _) => {
            masked_operand(i, op);
            handler!(op, |core, o| {
                let (v, mask) = (ymm(core, o.dst), ymm(core, o.src));
                store_masked(core, o, v[0], mask[0])
            })
        }
        _ => None,
    }
}

/// True if the mask selects element `n`: its top bit is set.
fn selects<T: Prim>(mask: Ymm, n: u64) -> bool {
    let top = (n + 1) * 8 * T::SIZE - 1;
    mask[(top / 128) as usize] >> (top % 128) & 1 != 0
}

/// Returns the numbers of the elements of an operation.
fn elements<T: Prim>(op: &Op) -> std::ops::Range<u64> {
    let bytes = if wide(op) { 32 } else { 16 };
    0..bytes / T::SIZE
}

fn load<T: Prim>(core: &mut Core, op: &Op) -> Flow {
    let mask = other(core, op);
    let va = op.ea(core);
    let mut r: Ymm = [0; 2];
    for n in elements::<T>(op).filter(|&n| selects::<T>(mask, n)) {
        let at = n * 8 * T::SIZE;
        let v = core.mem.load::<T>(va.wrapping_add(n * T::SIZE))?.widen();
        r[(at / 128) as usize] |= v << (at % 128);
    }
    set(core, op, r);
    Ok(())
}

fn store<T: Prim>(core: &mut Core, op: &Op) -> Flow {
    let (v, mask) = (ymm(core, op.src), other(core, op));
    write::<T>(core, op, v, mask)
}

/// Stores the selected elements, or nothing if one of them cannot be stored.
fn write<T: Prim>(core: &mut Core, op: &Op, v: Ymm, mask: Ymm) -> Flow {
    let va = op.ea(core);
    for n in elements::<T>(op).filter(|&n| selects::<T>(mask, n)) {
        core.mem.probe_write(va.wrapping_add(n * T::SIZE), T::SIZE)?;
    }
    for n in elements::<T>(op).filter(|&n| selects::<T>(mask, n)) {
        let at = n * 8 * T::SIZE;
        let element = T::narrow(v[(at / 128) as usize] >> (at % 128));
        core.mem.store(va.wrapping_add(n * T::SIZE), element)?;
    }
    Ok(())
}

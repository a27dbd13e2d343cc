//! Gathers (SDM vol. 2C, VGATHERDPS and following; VPGATHERDD and following).
//!
//! Elements are loaded in ascending order. If a load faults, the lower elements are in the destination already, and
//! their elements of the mask are zero. The mask's other selected elements are all ones.

use super::operand::{Ymm, handler, other, set_ymm, unchecked, ymm};
use crate::core::Core;
use crate::mem::Prim;
use crate::op::{ADDRESS_32, Kind, Op, slot};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, Mnemonic, Register};

/// Chooses the handler of a gather. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    let index = i.memory_index();
    let kind = match i.mnemonic() {
        Vpgatherdd | Vgatherdps => handler!(op, |core, o| unchecked(core, |core| gather::<u32, 32>(core, o))),
        Vpgatherdq | Vgatherdpd => handler!(op, |core, o| unchecked(core, |core| gather::<u64, 32>(core, o))),
        Vpgatherqd | Vgatherqps => handler!(op, |core, o| unchecked(core, |core| gather::<u32, 64>(core, o))),
        Vpgatherqq | Vgatherqpd => handler!(op, |core, o| unchecked(core, |core| gather::<u64, 64>(core, o))),
        _ => return None,
    };
    // The index register takes the place of the register besides the destination and the mask.
    op.aux |= index.number() as u16;
    op.index = slot::ZERO;
    op.scale = op.scale & ADDRESS_32 | i.memory_index_scale().trailing_zeros() as u8;
    if i.memory_base() == Register::None && i.memory_displ_size() == 4 {
        op.scale |= ADDRESS_32;
    }
    // Number of elements: as many as fit into the wider of the destination and the index.
    let bytes = |r: Register| if r.is_ymm() { 32 } else { 16 };
    let elements = match i.mnemonic() {
        Vpgatherdd | Vgatherdps => bytes(i.op0_register()) / 4,
        Vpgatherdq | Vgatherdpd => bytes(i.op0_register()) / 8,
        _ => bytes(index) / 8,
    };
    op.imm = elements;
    kind
}

/// Returns the linear address of element `n`, whose index has `INDEX` bits.
fn address<const INDEX: u32>(core: &Core, op: &Op, n: u32) -> u64 {
    let indices = other(core, op);
    let at = n * INDEX;
    let index = (indices[(at / 128) as usize] >> (at % 128)) as u64;
    let index = if INDEX == 32 { index as u32 as i32 as u64 } else { index };
    let offset = op.offset(core).wrapping_add(index << (op.scale & 3));
    let offset = if op.scale & ADDRESS_32 != 0 { offset & 0xffff_ffff } else { offset };
    offset.wrapping_add(core.regs[usize::from(op.seg & 31)])
}

fn gather<T: Prim, const INDEX: u32>(core: &mut Core, op: &Op) -> Flow {
    let bits = 8 * T::SIZE as u32;
    let ones = u128::MAX >> (128 - bits);
    let count = op.imm as u32;
    let given: Ymm = ymm(core, op.src);
    let mut mask: Ymm = [0; 2];
    for n in 0..count {
        let (half, at) = ((n * bits / 128) as usize, n * bits % 128);
        if given[half] >> (at + bits - 1) & 1 != 0 {
            mask[half] |= ones << at;
        }
    }
    let mut r: Ymm = ymm(core, op.dst);
    let used = |half: usize| {
        let bits = (count * bits).saturating_sub(128 * half as u32).min(128);
        if bits == 0 { 0 } else { u128::MAX >> (128 - bits) }
    };
    for n in 0..count {
        let (half, at) = ((n * bits / 128) as usize, n * bits % 128);
        if mask[half] >> (at + bits - 1) & 1 == 0 {
            continue;
        }
        let va = address::<INDEX>(core, op, n);
        match core.mem.load::<T>(va) {
            Ok(v) => r[half] = r[half] & !(ones << at) | v.widen() << at,
            Err(Stop::Fault) => {
                set_ymm(core, op.dst, r);
                set_ymm(core, op.src, mask);
                return Err(Stop::Fault);
            }
            Err(stop) => return Err(stop),
        }
        mask[half] &= !(ones << at);
    }
    set_ymm(core, op.dst, [r[0] & used(0), r[1] & used(1)]);
    set_ymm(core, op.src, [0; 2]);
    Ok(())
}

//! Registers and memory for instructions that `place` cannot aim by itself: gathers, and XSAVE with its relatives.

use crate::arena::{self, DATA, DATA_LEN, GS_BASE, HIGH, LOW};
use crate::rng::Rng;
use crate::state::{FXSAVE_LEN, State, to_fxsave};
use crate::values::{self, Shape};
use iced_x86::{Instruction, Mnemonic, Register};

const RAX: usize = 0;
const RDX: usize = 2;
/// Size of an XSAVE area with the x87, SSE and AVX components, in bytes.
pub(crate) const AREA_LEN: u64 = 832;
/// Bit of XCOMP_BV: the area has the compacted format.
const COMPACTED: u64 = 1 << 63;

/// True for XSAVE and its relatives that have an area in memory.
pub(crate) fn has_area(i: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(i.mnemonic(), Xsave | Xsave64 | Xsaveopt | Xsaveopt64 | Xsavec | Xsavec64 | Xrstor | Xrstor64)
}

/// Selects components that both sides have. The host may have more.
pub(crate) fn select_components(state: &mut State, rng: &mut Rng) {
    let upper = !0xffff_ffff;
    state.gpr[RAX] = state.gpr[RAX] & upper | if rng.one_in(2) { 7 } else { rng.below(8) };
    state.gpr[RDX] &= upper;
}

/// Fills an XSAVE area with a usually valid image.
pub(crate) fn fill_area(bytes: &mut [u8], rng: &mut Rng) {
    let mut image = [0u8; FXSAVE_LEN];
    rng.fill(&mut image);
    to_fxsave(&values::fpu(Shape::Extended, rng), &mut image);
    let len = bytes.len().min(FXSAVE_LEN);
    bytes[..len].copy_from_slice(&image[..len]);
    let saved = rng.below(8);
    let layout = match rng.below(4) {
        0 => COMPACTED | saved | rng.below(8),
        1 => COMPACTED | rng.below(8),
        2 => 0,
        _ => rng.pick(&[0, 0, 1, COMPACTED | 7, 1 << 62]),
    };
    let reserved = if rng.one_in(8) { 1 << rng.below(64) } else { 0 };
    for (n, word) in [saved, layout, reserved, 0, 0, 0, 0, reserved].into_iter().enumerate() {
        if let Some(place) = bytes.get_mut(FXSAVE_LEN + 8 * n..FXSAVE_LEN + 8 * n + 8) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Draws base and indices of a gather, so that each selected element is in the arena or faults on both sides. Returns
/// false if an element is elsewhere.
pub(crate) fn aim_gather(i: &Instruction, state: &mut State, rng: &mut Rng) -> bool {
    use Mnemonic::*;
    let (index_bits, bits) = match i.mnemonic() {
        Vpgatherdd | Vgatherdps => (32, 32),
        Vpgatherdq | Vgatherdpd => (32, 64),
        Vpgatherqd | Vgatherqps => (64, 32),
        _ => (64u32, 64u32),
    };
    let short = i.memory_base().is_gpr32() || i.memory_displ_size() == 4 && i.memory_base() == Register::None;
    let view = if short || rng.one_in(3) { LOW } else { HIGH };
    let segment = if i.memory_segment() == Register::GS { GS_BASE } else { 0 };
    let edge = rng.one_in(8);
    let offset = if edge { DATA_LEN - rng.below(64) } else { 0x4000 + rng.below(0x8000) };
    let to = (view + DATA + offset).wrapping_sub(segment);
    if i.memory_base().is_gpr() {
        state.gpr[i.memory_base().full_register().number()] = to.wrapping_sub(i.memory_displacement64());
    }
    let index = i.memory_index().number();
    for half in 0..2 {
        let v = (0..128 / index_bits).fold(0u128, |v, n| {
            let value = rng.below(512).wrapping_sub(256) as i64 as i128 as u128;
            v | (value & (u128::MAX >> (128 - index_bits))) << (n * index_bits)
        });
        if half == 0 { state.fpu.xmm[index] = v } else { state.ymm[index] = v }
    }
    let bytes = |r: Register| if r.is_ymm() { 256 } else { 128 };
    let count = (bytes(i.memory_index()) / index_bits).min(bytes(i.op0_register()) / bits);
    let mask = i.op_register(2).number();
    let base = match i.memory_base() {
        Register::RIP | Register::EIP => return false,
        r if r.is_gpr() => state.gpr[r.full_register().number()],
        _ => 0,
    };
    (0..count).all(|n| {
        let half = |register: usize, at: u32| {
            if at < 128 { state.fpu.xmm[register] >> at } else { state.ymm[register] >> (at - 128) }
        };
        if half(mask, n * bits + bits - 1) & 1 == 0 {
            return true;
        }
        let raw = half(index, n * index_bits) as u64;
        let value = if index_bits == 32 { raw as u32 as i32 as u64 } else { raw };
        let scaled = value.wrapping_mul(i.memory_index_scale().into());
        let va = base.wrapping_add(i.memory_displacement64()).wrapping_add(scaled);
        let va = if short { va & 0xffff_ffff } else { va };
        arena::is_safe(va.wrapping_add(segment), (bits / 8).into())
    })
}

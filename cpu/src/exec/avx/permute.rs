//! Permutations, broadcasts, blends and shifts with a count for each element.

use super::operand::{Ymm, fourth, halves, handler, immediate, other, rm, set, set_ymm, wide};
use crate::exec::sse::lanes::element;
use crate::exec::sse::shuffle;
use crate::op::{Kind, Op};
use iced_x86::{Instruction, Mnemonic};

/// Defines the handler of a blend by the fourth operand.
macro_rules! blend {
    ($op:expr, $f:path) => {
        handler!($op, |core, o| {
            let b = rm(core, o)?;
            let (a, mask) = (other(core, o), fourth(core, o));
            set(core, o, [$f(a[0], b[0], mask[0]), $f(a[1], b[1], mask[1])]);
            Ok(())
        })
    };
}

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    let by_immediate = i.op_kind(2) == iced_x86::OpKind::Immediate8;
    match i.mnemonic() {
        Vbroadcastss | Vpbroadcastd => handler!(op, |core, o| {
            let v = rm(core, o)?[0] & 0xffff_ffff;
            set(core, o, [v * 0x0000_0001_0000_0001_0000_0001_0000_0001; 2]);
            Ok(())
        }),
        Vbroadcastsd | Vpbroadcastq => handler!(op, |core, o| {
            let v = rm(core, o)?[0] & u128::from(u64::MAX);
            set(core, o, [v | v << 64; 2]);
            Ok(())
        }),
        Vpbroadcastb => handler!(op, |core, o| {
            let v = rm(core, o)?[0] as u8;
            set(core, o, [u128::from_le_bytes([v; 16]); 2]);
            Ok(())
        }),
        Vpbroadcastw => handler!(op, |core, o| {
            let v = rm(core, o)?[0] & 0xffff;
            set(core, o, [v * 0x0001_0001_0001_0001_0001_0001_0001_0001; 2]);
            Ok(())
        }),
        Vbroadcastf128 | Vbroadcasti128 => handler!(op, |core, o| {
            let v = rm(core, o)?[0];
            set(core, o, [v; 2]);
            Ok(())
        }),
        Vpermilps if by_immediate => handler!(op, |core, o| {
            let b = rm(core, o)?;
            let imm = immediate(o);
            set(core, o, b.map(|b| shuffle::dwords(b, imm)));
            Ok(())
        }),
        Vpermilps => halves!(op, |a, b, imm| dwords_by(a, b)),
        Vpermilpd if by_immediate => handler!(op, |core, o| {
            let b = rm(core, o)?;
            let imm = immediate(o);
            set(core, o, [shuffle::shufpd(b[0], b[0], imm), shuffle::shufpd(b[1], b[1], imm >> 2)]);
            Ok(())
        }),
        Vpermilpd => halves!(op, |a, b, imm| shuffle::shufpd(a, a, (b >> 1 & 1 | b >> 64 & 2) as u64)),
        Vpermq | Vpermpd => handler!(op, |core, o| {
            let b = rm(core, o)?;
            let imm = immediate(o) as u32;
            let pick = |n: u32| qword(b, imm >> (2 * n) & 3);
            set_ymm(core, o.dst, [pick(0) | pick(1) << 64, pick(2) | pick(3) << 64]);
            Ok(())
        }),
        Vpermd | Vpermps => handler!(op, |core, o| {
            let b = rm(core, o)?;
            let index = other(core, o);
            let pick = |from: u32| element::<32>(b[(from >> 2 & 1) as usize], from & 3);
            let half = |x: u128| (0..4).fold(0, |r, n| r | pick((x >> (32 * n)) as u32) << (32 * n));
            set_ymm(core, o.dst, index.map(half));
            Ok(())
        }),
        Vperm2f128 | Vperm2i128 => handler!(op, |core, o| {
            let b = rm(core, o)?;
            let a = other(core, o);
            let all = [a[0], a[1], b[0], b[1]];
            let pick = |control: u64| if control & 8 != 0 { 0 } else { all[(control & 3) as usize] };
            set_ymm(core, o.dst, [pick(o.imm), pick(o.imm >> 4)]);
            Ok(())
        }),
        Vpblendd => handler!(op, |core, o| {
            let b = rm(core, o)?;
            let a = other(core, o);
            let imm = immediate(o);
            let half = |n: usize| shuffle::blend_imm::<32>(a[n], b[n], imm >> (4 * n));
            set(core, o, [half(0), half(1)]);
            Ok(())
        }),
        Vpblendvb => blend!(op, shuffle::blend_bytes),
        Vblendvps => blend!(op, shuffle::blend_dwords),
        Vblendvpd => blend!(op, shuffle::blend_qwords),
        Vpsllvd => halves!(op, |a, b, imm| each::<32>(a, b, |v, n| if n < 32 { v << n } else { 0 })),
        Vpsllvq => halves!(op, |a, b, imm| each::<64>(a, b, |v, n| if n < 64 { v << n } else { 0 })),
        Vpsrlvd => halves!(op, |a, b, imm| each::<32>(a, b, |v, n| if n < 32 { v >> n } else { 0 })),
        Vpsrlvq => halves!(op, |a, b, imm| each::<64>(a, b, |v, n| if n < 64 { v >> n } else { 0 })),
        Vpsravd => halves!(op, |a, b, imm| {
            each::<32>(a, b, |v, n| (i64::from(v as u32 as i32) >> n.min(31)) as u64)
        }),
        _ => None,
    }
}

/// Returns qword `n` of a register.
fn qword(v: Ymm, n: u32) -> u128 {
    element::<64>(v[(n >> 1) as usize], n & 1)
}

/// VPERMILPS with a register: each dword of `control` selects a dword of `a`.
fn dwords_by(a: u128, control: u128) -> u128 {
    (0..4).fold(0, |r, n| r | element::<32>(a, (control >> (32 * n)) as u32 & 3) << (32 * n))
}

/// Applies `f` to the elements of `a` and `b`, of `BITS` bits each.
fn each<const BITS: u32>(a: u128, b: u128, f: impl Fn(u64, u64) -> u64) -> u128 {
    (0..128 / BITS).fold(0, |r, n| {
        let v = f(element::<BITS>(a, n) as u64, element::<BITS>(b, n) as u64);
        r | element::<BITS>(u128::from(v), 0) << (n * BITS)
    })
}

//! ROUNDPS, ROUNDPD, ROUNDSS, ROUNDSD. They are computed in software because a host may lack SSE4.1.

use super::float;
use super::operand::{merge, set_xmm, usable, xmm, xmm_op};
use crate::core::Core;
use crate::op::{Kind, Op};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, Mnemonic};

/// Chooses the handler of a rounding instruction. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    match i.mnemonic() {
        Roundsd => xmm_op!(i, op, u64, |c, o, a, b| merge::<64>(a, round::<64>(c, b, o.imm, 1)?)),
        Roundss => xmm_op!(i, op, u32, |c, o, a, b| merge::<32>(a, round::<32>(c, b, o.imm, 1)?)),
        Roundpd => xmm_op!(i, op, u128, |c, o, a, b| round::<64>(c, b, o.imm, 2)?),
        Roundps => xmm_op!(i, op, u128, |c, o, a, b| round::<32>(c, b, o.imm, 4)?),
        _ => None,
    }
}

/// Rounding modes, as the RC field of MXCSR encodes them.
pub(crate) const NEAREST: u32 = 0;
pub(crate) const DOWN: u32 = 1;
pub(crate) const UP: u32 = 2;

/// Rounds the first `n` elements of `b`, of `BITS` bits each. Bits 0-1 of `imm` are the rounding mode, unless bit 2
/// selects the mode of MXCSR. Bit 3 suppresses the precision exception (SDM vol. 2B, figure 4-24).
fn round<const BITS: u32>(core: &mut Core, b: u128, imm: u64, n: u32) -> Result<u128, Stop> {
    let mxcsr = core.fpu.mxcsr;
    let mode = if imm & 4 != 0 { mxcsr >> 13 & 3 } else { imm as u32 & 3 };
    let zero_denormals = mxcsr & float::DAZ != 0;
    let mut raised = 0;
    let mut r = 0;
    for k in 0..n {
        let element = (b >> (k * BITS)) as u64;
        let (v, flags) = if BITS == 64 {
            one::<52, 11>(element, mode, zero_denormals)
        } else {
            one::<23, 8>(element & 0xffff_ffff, mode, zero_denormals)
        };
        raised |= flags;
        r |= u128::from(v) << (k * BITS);
    }
    if imm & 8 != 0 {
        raised &= !float::PE;
    }
    float::settle(core, raised)?;
    Ok(r)
}

/// Rounds one number with `F` fraction bits and `E` exponent bits. Returns the result and the exception flags.
fn one<const F: u32, const E: u32>(x: u64, mode: u32, zero_denormals: bool) -> (u64, u32) {
    let bias = (1i64 << (E - 1)) - 1;
    let sign = x & 1 << (F + E);
    let magnitude = x ^ sign;
    let exponent = (magnitude >> F) as i64;
    if exponent == (1 << E) - 1 {
        let quiet = 1u64 << (F - 1);
        let nan = magnitude & ((1 << F) - 1) != 0;
        return match nan {
            true if x & quiet == 0 => (x | quiet, float::IE),
            _ => (x, 0),
        };
    }
    if magnitude == 0 || exponent == 0 && zero_denormals {
        return (sign, 0);
    }
    let away = |low_above_half: bool, half: bool, odd: bool| match mode {
        NEAREST => low_above_half || half && odd,
        DOWN => sign != 0,
        UP => sign == 0,
        _ => false,
    };
    if exponent < bias {
        let one = (bias as u64) << F;
        let half = (bias as u64 - 1) << F;
        let r = if away(magnitude > half, magnitude == half, false) { one } else { 0 };
        return (sign | r, float::PE);
    }
    let fraction = i64::from(F) - (exponent - bias);
    if fraction <= 0 {
        return (x, 0);
    }
    let unit = 1u64 << fraction;
    let low = magnitude & (unit - 1);
    if low == 0 {
        return (x, 0);
    }
    let chopped = magnitude - low;
    let up = away(low > unit / 2, low == unit / 2, chopped & unit != 0);
    (sign | (chopped + if up { unit } else { 0 }), float::PE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_library_on_all_modes() {
        let values = [
            0.0,
            0.25,
            0.5,
            0.75,
            1.0,
            1.5,
            2.5,
            3.5,
            4.499_999,
            1e15 + 0.5,
            4_503_599_627_370_495.5,
            1e300,
            f64::MIN_POSITIVE,
            f64::INFINITY,
            5e-324,
        ];
        for v in values.into_iter().flat_map(|v: f64| [v, -v]) {
            let by = [v.round_ties_even(), v.floor(), v.ceil(), v.trunc()];
            for (mode, expected) in by.into_iter().enumerate() {
                let (r, flags) = one::<52, 11>(v.to_bits(), mode as u32, false);
                assert_eq!(r, expected.to_bits(), "{v} in mode {mode}");
                assert_eq!(flags != 0, v != expected, "{v} in mode {mode}");
            }
            let s = v as f32;
            let by = [s.round_ties_even(), s.floor(), s.ceil(), s.trunc()];
            for (mode, expected) in by.into_iter().enumerate() {
                let (r, _) = one::<23, 8>(u64::from(s.to_bits()), mode as u32, false);
                assert_eq!(r, u64::from(expected.to_bits()), "{s} in mode {mode}");
            }
        }
    }
}

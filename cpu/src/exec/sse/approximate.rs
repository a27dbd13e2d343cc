//! Approximations: RCPPS, RCPSS, RSQRTPS, RSQRTSS.
//!
//! The manual only bounds the relative error, by 1.5 * 2^-12, so hosts give different results. This CPU computes the
//! reciprocal, or the reciprocal square root, and rounds it to nearest with a significand of twelve bits. Special cases
//! follow the manual (SDM vol. 2B, RCPPS and RSQRTPS): denormal operands count as zeros, results that would be denormal
//! are zero, and MXCSR is neither read nor written.

use super::operand::{merge, set_xmm, usable, xmm, xmm_op};
use crate::core::Core;
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;
const QUIET: u32 = 0x0040_0000;
const INDEFINITE: u32 = 0xffc0_0000;

/// Chooses the handler of an approximation. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    match i.mnemonic() {
        Rcpps => xmm_op!(i, op, u128, |c, o, a, b| each(b, reciprocal)),
        Rcpss => xmm_op!(i, op, u32, |c, o, a, b| merge::<32>(a, u128::from(reciprocal(b as u32)))),
        Rsqrtps => xmm_op!(i, op, u128, |c, o, a, b| each(b, reciprocal_root)),
        Rsqrtss => xmm_op!(i, op, u32, |c, o, a, b| merge::<32>(a, u128::from(reciprocal_root(b as u32)))),
        _ => None,
    }
}

fn each(b: u128, f: impl Fn(u32) -> u32) -> u128 {
    (0..4).fold(0, |r, n| r | u128::from(f((b >> (32 * n)) as u32)) << (32 * n))
}

/// Assembles a single-precision number. `significand` has twelve bits, or is 2^12 after rounding up. `exponent` is the
/// biased exponent of the result if `significand` has twelve bits. For 2^12 the function increments the exponent.
fn assemble(sign: u32, significand: u64, exponent: i32) -> u32 {
    let (significand, exponent) =
        if significand >> 12 != 0 { (significand >> 1, exponent + 1) } else { (significand, exponent) };
    if exponent <= 0 {
        return sign;
    }
    sign | (exponent as u32) << 23 | ((significand as u32) << 12) & 0x007f_ffff
}

fn reciprocal(x: u32) -> u32 {
    let sign = x & SIGN;
    let exponent = (x >> 23 & 0xff) as i32;
    match exponent {
        0xff if x << 9 != 0 => return x | QUIET,
        0xff => return sign,
        0 => return sign | INFINITY,
        _ => {}
    }
    let m = u64::from(x & 0x007f_ffff | 0x0080_0000);
    // x = m * 2^(exponent - 150), so 1 / x = (2^35 / m) * 2^(115 - exponent), and 2^11 < 2^35 / m <= 2^12.
    assemble(sign, ((1 << 35) + m / 2) / m, 253 - exponent)
}

fn reciprocal_root(x: u32) -> u32 {
    let exponent = (x >> 23 & 0xff) as i32;
    match exponent {
        0xff if x << 9 != 0 => return x | QUIET,
        0 => return x & SIGN | INFINITY,
        _ if x & SIGN != 0 => return INDEFINITE,
        0xff => return 0,
        _ => {}
    }
    let m = u128::from(x & 0x007f_ffff | 0x0080_0000);
    // x = m * 2^s with an even s, so 1 / sqrt(x) = (2^40 / sqrt(m)) * 2^(-40 - s / 2).
    let (m, s) = if exponent & 1 == 0 { (m, exponent - 150) } else { (m << 1, exponent - 151) };
    let root = ((1u128 << 80) / m).isqrt() as u64;
    let excess = root.ilog2() - 11;
    let significand = (root + (1 << (excess - 1))) >> excess;
    // The result is significand * 2^(excess - 40 - s / 2). The leading bit of the significand is 2^11, and the bias is
    // 127.
    assemble(0, significand, excess as i32 + 11 - 40 - s / 2 + 127)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns numbers with all normal exponents, and significands spread over the whole range.
    fn normals() -> impl Iterator<Item = u32> {
        (1..255u32).flat_map(|e| (0..0x80_0000).step_by(0x1f_fff).map(move |f| e << 23 | f))
    }

    #[test]
    fn the_error_is_within_the_manuals_bound() {
        let bound = 1.5 / 4096.0;
        for x in normals() {
            let exact = 1.0 / f64::from(f32::from_bits(x));
            let r = f64::from(f32::from_bits(reciprocal(x)));
            if exact >= f64::from(f32::MIN_POSITIVE) {
                assert!((r / exact - 1.0).abs() <= bound, "1/{x:#x} gave {r}");
            } else {
                assert_eq!(r, 0.0);
            }
            let exact = 1.0 / f64::from(f32::from_bits(x)).sqrt();
            let r = f64::from(f32::from_bits(reciprocal_root(x)));
            assert!((r / exact - 1.0).abs() <= bound, "1/sqrt {x:#x} gave {r}");
        }
    }

    #[test]
    fn special_cases_follow_the_manual() {
        assert_eq!(reciprocal(0x8000_0001), 0xff80_0000);
        assert_eq!(reciprocal(0xff80_0000), 0x8000_0000);
        assert_eq!(reciprocal(0x7f80_0001), 0x7fc0_0001);
        assert_eq!(reciprocal(0x3f80_0000), 0x3f80_0000);
        assert_eq!(reciprocal_root(0x8000_0000), 0xff80_0000);
        assert_eq!(reciprocal_root(0xbf80_0000), INDEFINITE);
        assert_eq!(reciprocal_root(0x7f80_0000), 0);
        assert_eq!(reciprocal_root(0x4080_0000), 0x3f00_0000);
    }
}

//! Binary floating-point numbers in software: the parts from which fused multiply-add and F16C are computed. Results
//! and exception flags are those of IEEE 754 with the choices of SSE (SDM vol. 1, 11.5 and 14.5.2): tininess is
//! detected after rounding.

use crate::exec::sse::float::{OE, PE, UE};
use crate::exec::sse::round::{DOWN, NEAREST, UP};

/// A binary format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Format {
    /// Number of fraction bits.
    pub fraction: u32,
    /// Number of exponent bits.
    pub exponent: u32,
}

/// Half precision.
pub(super) const HALF: Format = Format { fraction: 10, exponent: 5 };
/// Single precision.
pub(super) const SINGLE: Format = Format { fraction: 23, exponent: 8 };
/// Double precision.
pub(super) const DOUBLE: Format = Format { fraction: 52, exponent: 11 };

/// Kind of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Zero,
    Finite,
    Infinite,
    QuietNan,
    SignallingNan,
}

/// A number as sign, class and, if it is finite, `significand * 2^exponent`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    pub negative: bool,
    pub class: Class,
    pub significand: u64,
    pub exponent: i32,
    /// True if the number is denormal. False for a denormal that DAZ turns into zero.
    pub denormal: bool,
}

impl Number {
    /// True for a quiet or signalling NaN.
    pub(super) fn is_nan(&self) -> bool {
        matches!(self.class, Class::QuietNan | Class::SignallingNan)
    }
}

/// How a result is rounded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounding {
    /// Rounding mode, as in MXCSR.
    pub mode: u32,
    /// True if tiny results become zero. It has no effect if underflow is unmasked.
    pub flush: bool,
    /// True if overflow is unmasked.
    pub overflow_unmasked: bool,
    /// True if underflow is unmasked.
    pub underflow_unmasked: bool,
}

impl Rounding {
    /// Returns the rounding that MXCSR selects.
    pub(super) fn of(mxcsr: u32) -> Rounding {
        Rounding {
            mode: mxcsr >> 13 & 3,
            flush: mxcsr >> 15 & 1 != 0,
            overflow_unmasked: mxcsr >> 10 & 1 == 0,
            underflow_unmasked: mxcsr >> 11 & 1 == 0,
        }
    }
}

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }
    fn sign(self, negative: bool) -> u64 {
        u64::from(negative) << (self.fraction + self.exponent)
    }
    /// Returns infinity.
    pub(super) fn infinity(self, negative: bool) -> u64 {
        self.sign(negative) | ((1 << self.exponent) - 1) << self.fraction
    }
    /// Returns zero.
    pub(super) fn zero(self, negative: bool) -> u64 {
        self.sign(negative)
    }
    /// Returns the QNaN floating-point indefinite (SDM vol. 1, 4.8.3.7), the result of invalid operations.
    pub(super) fn indefinite(self) -> u64 {
        self.infinity(true) | self.quiet()
    }
    /// Returns the bit that makes a NaN quiet.
    pub(super) fn quiet(self) -> u64 {
        1 << (self.fraction - 1)
    }
    /// Splits a number into its parts. With `zero_denormals`, denormal numbers count as zeros.
    pub(super) fn parts(self, bits: u64, zero_denormals: bool) -> Number {
        let fraction = bits & ((1 << self.fraction) - 1);
        let biased = (bits >> self.fraction & ((1 << self.exponent) - 1)) as i32;
        let negative = bits >> (self.fraction + self.exponent) & 1 != 0;
        let least = 1 - self.bias() - self.fraction as i32;
        let number = |class, significand, exponent| {
            let denormal = class == Class::Finite && biased == 0;
            Number { negative, class, significand, exponent, denormal }
        };
        if biased == (1 << self.exponent) - 1 {
            return number(
                match fraction {
                    0 => Class::Infinite,
                    _ if fraction & self.quiet() != 0 => Class::QuietNan,
                    _ => Class::SignallingNan,
                },
                0,
                0,
            );
        }
        if biased == 0 {
            let zero = fraction == 0 || zero_denormals;
            return number(if zero { Class::Zero } else { Class::Finite }, fraction, least);
        }
        number(Class::Finite, fraction | 1 << self.fraction, least + biased - 1)
    }

    /// Rounds `significand * 2^exponent` to the format. The significand is not zero; if bits below its lowest were lost,
    /// this bit is set. Returns the number and the exception flags.
    pub(super) fn round(self, negative: bool, significand: u128, exponent: i32, by: Rounding) -> (u64, u32) {
        let top = 127 - significand.leading_zeros() as i32;
        let fraction = self.fraction as i32;
        let (least, greatest) = (1 - self.bias(), self.bias());
        // The result with an unbounded exponent, `rounded * 2^(scale - fraction)`.
        let (mut rounded, inexact) = shift(significand, top - fraction, negative, by.mode);
        let mut scale = exponent + top;
        if rounded >> (fraction + 1) != 0 {
            (rounded, scale) = (rounded >> 1, scale + 1);
        }
        let precision = if inexact { PE } else { 0 };
        if scale < least {
            if by.underflow_unmasked {
                return (self.zero(negative), UE | precision);
            }
            if by.flush {
                return (self.zero(negative), UE | PE);
            }
            let (denormal, inexact) = shift(significand, least - fraction - exponent, negative, by.mode);
            return (self.sign(negative) | denormal, if inexact { UE | PE } else { 0 });
        }
        if scale > greatest {
            if by.overflow_unmasked {
                return (self.infinity(negative), OE | precision);
            }
            let infinite = match by.mode {
                NEAREST => true,
                DOWN => negative,
                UP => !negative,
                _ => false,
            };
            // The number before infinity is the greatest.
            return (self.infinity(negative) - u64::from(!infinite), OE | PE);
        }
        let biased = (scale + self.bias()) as u64;
        (self.sign(negative) | ((biased << fraction) + (rounded - (1 << fraction))), precision)
    }
}

/// Shifts right by `count` bits, or left by `-count`, and rounds. Returns the result, which fits into 64 bits, and true
/// if it is inexact.
fn shift(v: u128, count: i32, negative: bool, mode: u32) -> (u64, bool) {
    if count <= 0 {
        return ((v << -count) as u64, false);
    }
    let (kept, lost, half) = match count {
        1..=127 => (v >> count, v & ((1 << count) - 1), 1u128 << (count - 1)),
        // All bits are lost. From 129 bits on, they are less than a half.
        128 => (0, v, 1 << 127),
        _ => (0, 1, 2),
    };
    let up = match mode {
        NEAREST => lost > half || lost == half && kept & 1 != 0,
        DOWN => negative && lost != 0,
        UP => !negative && lost != 0,
        _ => false,
    };
    ((kept + u128::from(up)) as u64, lost != 0)
}

/// Returns the sign of the sum of two numbers that cancel exactly, or of two zeros.
fn sign_of_zero(a: bool, b: bool, mode: u32) -> bool {
    if a == b { a } else { mode == DOWN }
}

/// Shifts right. If bits are lost, sets the lowest bit.
fn shift_sticky(v: u128, count: u32) -> u128 {
    match count {
        0 => v,
        1..=127 => v >> count | u128::from(v & ((1 << count) - 1) != 0),
        _ => u128::from(v != 0),
    }
}

/// Returns `x * y + z` with a single rounding, for finite numbers and zeros.
pub(super) fn multiply_add(format: Format, x: Number, y: Number, z: Number, by: Rounding) -> (u64, u32) {
    let negative = x.negative != y.negative;
    let product = u128::from(x.significand) * u128::from(y.significand);
    let zero_product = x.class == Class::Zero || y.class == Class::Zero;
    match (zero_product, z.class == Class::Zero) {
        (true, true) => return (format.zero(sign_of_zero(negative, z.negative, by.mode)), 0),
        (true, false) => return format.round(z.negative, z.significand.into(), z.exponent, by),
        (false, true) => return format.round(negative, product, x.exponent + y.exponent, by),
        (false, false) => {}
    }
    // Both summands get their highest bit at this place, which leaves room for the carry.
    const TOP: u32 = 125;
    let place = |v: u128, exponent: i32| {
        let up = v.leading_zeros() - (127 - TOP);
        (v << up, exponent - up as i32)
    };
    let (mut a, a_exponent) = place(product, x.exponent + y.exponent);
    let (mut b, b_exponent) = place(z.significand.into(), z.exponent);
    let exponent = a_exponent.max(b_exponent);
    // At least twenty low bits of both are zero, so the lowest bit of the smaller one can stand for the lost bits.
    a = shift_sticky(a, (exponent - a_exponent) as u32);
    b = shift_sticky(b, (exponent - b_exponent) as u32);
    if negative == z.negative {
        return format.round(negative, a + b, exponent, by);
    }
    match a.cmp(&b) {
        std::cmp::Ordering::Equal => (format.zero(sign_of_zero(negative, z.negative, by.mode)), 0),
        std::cmp::Ordering::Greater => format.round(negative, a - b, exponent, by),
        std::cmp::Ordering::Less => format.round(z.negative, b - a, exponent, by),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: u32 = 0x1f80;

    fn fused(a: f64, b: f64, c: f64) -> f64 {
        let parts = |v: f64| DOUBLE.parts(v.to_bits(), false);
        f64::from_bits(multiply_add(DOUBLE, parts(a), parts(b), parts(c), Rounding::of(DEFAULT)).0)
    }

    #[test]
    fn results_are_those_of_the_library() {
        let values = [0.0, 5e-324, 1e-300, f64::MIN_POSITIVE, 0.1, 1.0, 1.0 + f64::EPSILON, 3.0, 1e17, 1e300];
        let signed: Vec<f64> = values.into_iter().flat_map(|v| [v, -v]).collect();
        for &a in &signed {
            for &b in &signed {
                for &c in &signed {
                    let expected = a.mul_add(b, c);
                    assert_eq!(fused(a, b, c).to_bits(), expected.to_bits(), "{a:e} * {b:e} + {c:e}");
                }
            }
        }
    }

    #[test]
    fn a_result_is_tiny_only_after_rounding() {
        // The greatest number below the least normal one, in the precision of a normal number.
        let least = 1 - 127 - 23;
        let below = (1u128 << 25) - 1;
        assert_eq!(SINGLE.round(false, below, least - 2, Rounding::of(DEFAULT)), (1 << 23, PE));
        assert_eq!(
            SINGLE.round(false, below - 2, least - 2, Rounding::of(DEFAULT)),
            ((1 << 23) - 1, UE | PE)
        );
        assert_eq!(SINGLE.round(false, 1, least, Rounding::of(DEFAULT)), (1, 0));
        assert_eq!(SINGLE.round(false, 1, least, Rounding::of(DEFAULT | 1 << 15)), (0, UE | PE));
        assert_eq!(SINGLE.round(false, 1, least, Rounding::of(0)).1, UE);
    }

    #[test]
    fn overflow_follows_the_rounding_mode() {
        let huge = |negative, mode: u32| HALF.round(negative, 1, 20, Rounding::of(DEFAULT | mode << 13)).0;
        assert_eq!([0, 1, 2, 3].map(|mode| huge(false, mode)), [0x7c00, 0x7bff, 0x7c00, 0x7bff]);
        assert_eq!([0, 1, 2, 3].map(|mode| huge(true, mode)), [0xfc00, 0xfc00, 0xfbff, 0xfbff]);
    }
}

//! The transcendental functions on 128-bit numbers: argument reduction and power series.
//!
//! Each sum stops when a term is below the last place of the sum. With at most forty terms, the relative error of a
//! result is below 2^-120. That is far less than half a unit of the extended format, which has 64 bits.

use super::wide::{ONE, Wide, ZERO};

/// A sum stops at a term whose exponent is more than this below the exponent of the sum, because the next terms are too
/// small to change the result.
const NEGLIGIBLE: i32 = 130;

/// pi
pub(super) const PI: Wide = Wide::new(1, 0xc90f_daa2_2168_c234_c4c6_628b_80dc_1cd1);
/// ln 2
const LN_2: Wide = Wide::new(-1, 0xb172_17f7_d1cf_79ab_c9e3_b398_03f2_f6af);
/// 1 / ln 2
const LOG2_E: Wide = Wide::new(0, 0xb8aa_3b29_5c17_f0bb_be87_fed0_691d_3e89);
/// arctan(k / 8) for k from 1 to 8
const ARCTAN_EIGHTHS: [Wide; 8] = [
    Wide::new(-4, 0xfead_d4d5_617b_6e32_c897_989f_3e88_8ef8),
    Wide::new(-3, 0xfadb_afc9_6406_eb15_6dc7_9ef5_f7a2_17e6),
    Wide::new(-2, 0xb7b0_ca0f_26f7_8473_8aa3_2122_dcfe_4483),
    Wide::new(-2, 0xed63_382b_0dda_7b45_6fe4_45ec_bc3a_8d03),
    Wide::new(-1, 0x8f00_5d5e_f7f5_9f9b_5c83_5e16_65c4_3748),
    Wide::new(-1, 0xa4bc_7d19_34f7_0924_19a8_7f2a_457d_ac9f),
    Wide::new(-1, 0xb805_3e2b_c231_9e73_cb2d_a552_10a4_443d),
    Wide::new(-1, 0xc90f_daa2_2168_c234_c4c6_628b_80dc_1cd1),
];
/// Half of Intel's 66-bit pi, in units of 2^-65 (SDM vol. 1, 8.3.8).
const HALF_PI_66: u128 = 0x3_243f_6a88_85a3_08d3;
const HALF_PI_66_UNIT: i32 = -65;

/// Returns `first` plus the terms of a series. `next` computes a term from the previous term and the number of the
/// term, from 1.
fn sum(first: Wide, next: impl Fn(Wide, u32) -> Wide) -> Wide {
    let (mut total, mut term, mut n) = (first, first, 1);
    loop {
        term = next(term, n);
        if term.is_zero() {
            return total;
        }
        total = total.add(term);
        if term.exponent < total.exponent - NEGLIGIBLE {
            return total;
        }
        n += 1;
    }
}

/// Returns sine and cosine of `x`, whose magnitude must be below 2^63. As the manual specifies, the argument reduction
/// uses Intel's 66-bit pi, and is exact for this value. Results for large arguments depend on this value of pi.
pub(super) fn sine_cosine(x: Wide) -> (Wide, Wide) {
    let (quadrant, r) = reduce(x.signed(false));
    let square = r.mul(r);
    let (s, c) = if r.is_zero() {
        (ZERO, ONE)
    } else {
        (
            sum(r, |term, n| term.mul(square).div_small(2 * n * (2 * n + 1)).negate()),
            sum(ONE, |term, n| term.mul(square).div_small((2 * n - 1) * 2 * n).negate()),
        )
    };
    let (s, c) = match quadrant & 3 {
        0 => (s, c),
        1 => (c, s.negate()),
        2 => (s.negate(), c.negate()),
        _ => (c.negate(), s),
    };
    (if x.negative { s.negate() } else { s }, c)
}

/// Returns the number of quarter turns in `x`, and the remainder between -pi/4 and pi/4.
fn reduce(x: Wide) -> (u128, Wide) {
    // An argument below 1/2 needs no reduction. An argument from 1/2 to 2^63 has 64 significant bits, and is therefore
    // a whole number of units of 2^-65.
    if x.exponent < -1 {
        return (0, x);
    }
    let shift = 127 - x.exponent + HALF_PI_66_UNIT;
    let units = x.significand >> shift;
    let (quarters, rest) = (units / HALF_PI_66, units % HALF_PI_66);
    if rest > HALF_PI_66 / 2 {
        (quarters + 1, Wide::scaled(true, HALF_PI_66 - rest, HALF_PI_66_UNIT))
    } else {
        (quarters, Wide::scaled(false, rest, HALF_PI_66_UNIT))
    }
}

/// Returns the angle of the point (x, y), between -pi and pi. Neither coordinate may be zero.
pub(super) fn arctangent(y: Wide, x: Wide) -> Wide {
    let (a, b) = (y.signed(false), x.signed(false));
    let (small, large) = if a.reaches(b) { (b, a) } else { (a, b) };
    let mut angle = first_eighth(small, large);
    if a.reaches(b) {
        angle = half(PI).sub(angle);
    }
    if x.negative {
        angle = PI.sub(angle);
    }
    angle.signed(y.negative)
}

fn half(x: Wide) -> Wide {
    Wide { exponent: x.exponent - 1, ..x }
}

/// Returns arctan(small / large). The quotient must be at most one.
fn first_eighth(small: Wide, large: Wide) -> Wide {
    let t = small.div(large);
    // `k` eighths is the multiple of one eighth that is nearest to `t`.
    let sixteenths = if t.exponent < -5 { 0 } else { ((t.significand >> 64) >> (59 - t.exponent)) as usize };
    let k = sixteenths.div_ceil(2).min(8);
    let (base, t) = match k {
        0 => (ZERO, t),
        _ => {
            // tan(arctan t - arctan c) = (t - c) / (1 + t c). Numerator and denominator are multiplied by `large`, so
            // that they contain `small` instead of `large * t`, and `t` adds no rounding error.
            let c = Wide::scaled(false, k as u128, -3);
            (ARCTAN_EIGHTHS[k - 1], small.sub(large.mul(c)).div(large.add(small.mul(c))))
        }
    };
    let square = t.mul(t);
    let power = std::cell::Cell::new(t);
    let series = sum(t, |_, n| {
        power.set(power.get().mul(square).negate());
        power.get().div_small(2 * n + 1)
    });
    base.add(series)
}

/// Returns 2^x - 1. `x` must be nonzero and between -1 and 1.
pub(super) fn power_of_two_minus_one(x: Wide) -> Wide {
    let y = x.mul(LN_2);
    sum(y, |term, n| term.mul(y).div_small(n + 1))
}

/// Returns log2(1 + x). `x` must be nonzero and above -1.
pub(super) fn log2_one_plus(x: Wide) -> Wide {
    // For small x the series converges fast. It uses x directly, because 1 + x would lose the last bits of x.
    if x.exponent < -2 {
        return hyperbolic(x, Wide::integer(2).add(x));
    }
    log2(ONE.add(x))
}

/// Returns log2(x) for positive x. The result is exact if x is a power of two.
pub(super) fn log2(x: Wide) -> Wide {
    /// Approximation of sqrt(2).
    const ROOT_2: u128 = 0xb504_f334 << 96;
    let above = x.significand >= ROOT_2;
    let whole = x.exponent + i32::from(above);
    let m = Wide { exponent: if above { -1 } else { 0 }, ..x };
    let numerator = m.sub(ONE);
    if numerator.is_zero() {
        return Wide::integer(whole);
    }
    Wide::integer(whole).add(hyperbolic(numerator, m.add(ONE)))
}

/// Returns log2((1 + s) / (1 - s)) for s = a / b.
fn hyperbolic(a: Wide, b: Wide) -> Wide {
    let s = a.div(b);
    let square = s.mul(s);
    let power = std::cell::Cell::new(s);
    let series = sum(s, |_, n| {
        power.set(power.get().mul(square));
        power.get().div_small(2 * n + 1)
    });
    let doubled = Wide { exponent: series.exponent + 1, ..series };
    doubled.mul(LOG2_E)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: Wide, b: Wide) -> bool {
        let d = a.sub(b);
        d.is_zero() || d.exponent < a.exponent - 118
    }

    #[test]
    fn the_arctangent_table_agrees_with_the_series() {
        for k in 1..=8u128 {
            let t = Wide::scaled(false, k, -3);
            // Euler's series, which needs no table: atan t = sum of 2^2n n!^2 / (2n+1)! t^(2n+1) / (1 + t^2)^(n+1).
            let d = ONE.add(t.mul(t));
            let z = t.mul(t).div(d);
            let direct =
                sum(t.div(d), |term, n| term.mul(z).mul(Wide::integer(2 * n as i32)).div_small(2 * n + 1));
            assert!(close(ARCTAN_EIGHTHS[k as usize - 1], direct), "arctan({k}/8)");
        }
        assert!(close(PI, Wide { exponent: 1, ..ARCTAN_EIGHTHS[7] }));
    }

    #[test]
    fn identities_hold() {
        for n in 1..200 {
            let x = Wide::scaled(n % 2 == 0, n as u128 * 0x1_2345_6789, -35 - n % 9);
            let (s, c) = sine_cosine(x);
            assert!(close(s.mul(s).add(c.mul(c)), ONE), "sin^2 + cos^2 at {n}");
            let y = x.signed(false);
            if y.exponent < 0 {
                let two_to_x = ONE.add(power_of_two_minus_one(y));
                assert!(close(log2(two_to_x), y), "log2(2^x) at {n}");
                assert!(close(log2_one_plus(y), log2(ONE.add(y))), "log2(1 + x) at {n}");
            }
            if y.exponent < -1 {
                let (s, c) = sine_cosine(y);
                assert!(close(arctangent(s, c), y), "arctan(tan x) at {n}");
            }
        }
    }

    #[test]
    fn large_arguments_are_reduced_exactly() {
        // Reduces 2^62, and computes it again from the quarter turns and the remainder.
        let x = Wide::new(62, 1 << 127);
        let (quarters, r) = reduce(x);
        let back =
            Wide::scaled(false, quarters, 0).mul(Wide::scaled(false, HALF_PI_66, HALF_PI_66_UNIT)).add(r);
        assert!(close(back, x));
        assert!(r.exponent < 0);
    }
}

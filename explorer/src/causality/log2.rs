//! Base-2 logarithms in fixed point, computed only with integers because decisions must be the same on every host.

/// Number of bits after the binary point.
pub(super) const BITS: u32 = 32;
/// The number 1.
pub(super) const ONE: i64 = 1 << BITS;

/// Returns the base-2 logarithm of a number, and 0 for the number 0. The error is below 2^-31.
pub(super) fn log2(n: u64) -> i64 {
    let whole = n.max(1).ilog2();
    // The mantissa lies between 1 and 2 and has 63 bits after the binary point.
    let mut mantissa = u128::from(n.max(1)) << (63 - whole);
    let mut part = 0i64;
    for bit in (0..BITS).rev() {
        mantissa = (mantissa * mantissa) >> 63;
        if mantissa >> 64 > 0 {
            part |= 1 << bit;
            mantissa >>= 1;
        }
    }
    (i64::from(whole) << BITS) | part
}

/// Returns 2 to the power `power`, which must be at most 0. Both numbers have `BITS` bits after the binary point. A
/// result that is too small for these bits becomes 0.
pub(super) fn exp2(power: i64) -> u64 {
    if power >= 0 {
        return ONE as u64;
    }
    let whole = (-power) >> BITS;
    let part = (-power) & (ONE - 1);
    if whole > i64::from(BITS) {
        return 0;
    }
    // Bit i of the fraction contributes the factor 2^-(2^(i-32)), a repeated square root of 1/2. Each factor has 62
    // bits after the binary point.
    let mut result = 1u128 << 62;
    let mut factor = 1u128 << 61;
    for bit in (0..BITS).rev() {
        factor = (factor << 62).isqrt();
        if part >> bit & 1 == 1 {
            result = (result * factor) >> 62;
        }
    }
    u64::try_from(result >> (62 - BITS) >> whole).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_and_powers_agree_with_floats() {
        for n in (1..2_000).chain([1 << 40, u64::MAX, 123_456_789_012]) {
            let (here, there) = (log2(n) as f64 / ONE as f64, (n as f64).log2());
            assert!((here - there).abs() < 1e-9, "log2 {n}: {here} instead of {there}");
        }
        for i in 0..2_000i64 {
            let power = -(i * i * 40_000_000 + i);
            let (here, there) = (exp2(power) as f64, (power as f64 / ONE as f64).exp2() * ONE as f64);
            assert!((here - there).abs() <= 2.0, "2^{power}: {here} instead of {there}");
        }
        assert_eq!((exp2(0), exp2(-ONE), exp2(i64::MIN + 1)), (ONE as u64, ONE as u64 / 2, 0));
    }
}

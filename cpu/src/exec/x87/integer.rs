//! Exact conversion of integers and packed decimal numbers to extended precision.

use crate::host_fp::x87::Extended;

/// Exponent bias of the extended format.
const BIAS: u16 = 0x3fff;

/// Converts an integer.
pub(super) fn extended(v: i64) -> Extended {
    from_magnitude(v < 0, v.unsigned_abs())
}

/// Converts a number that is given by its sign and magnitude.
fn from_magnitude(negative: bool, magnitude: u64) -> Extended {
    let sign = if negative { 0x8000 } else { 0 };
    if magnitude == 0 {
        return (0, sign);
    }
    let shift = magnitude.leading_zeros();
    (magnitude << shift, sign | (BIAS + 63 - shift as u16))
}

/// Converts eighteen packed decimal digits and a sign (SDM vol. 1, 4.7). The manual leaves digits above nine undefined.
/// As on hardware, they contribute their numeric value.
pub(super) fn from_decimal(v: u128) -> Extended {
    let magnitude =
        (0..18).rev().fold(0u64, |r, n| r.wrapping_mul(10).wrapping_add((v >> (4 * n)) as u64 & 15));
    from_magnitude(v >> 79 & 1 != 0, magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_exact() {
        assert_eq!(extended(0), (0, 0));
        assert_eq!(extended(1), (1 << 63, 0x3fff));
        assert_eq!(extended(-3), (3 << 62, 0xc000));
        assert_eq!(extended(i64::MIN), (1 << 63, 0xc03e));
    }

    #[test]
    fn decimal_digits_read_from_the_left() {
        assert_eq!(from_decimal(0x12345), extended(12345));
        assert_eq!(from_decimal(1 << 79 | 0x99_9999_9999_9999_9999), extended(-999_999_999_999_999_999));
        assert_eq!(from_decimal(1 << 79), (0, 0x8000));
    }
}

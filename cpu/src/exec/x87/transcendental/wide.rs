//! Numbers with a significand of 128 bits, and their rounding to the extended format. The series for transcendental
//! functions use them.
//!
//! Sums and products have an error of less than two units in the last of 128 places; the extended format has 64 places.
//! The last place is also set if bits were lost, so that rounding never takes an inexact result for an exact one.

use super::super::format::{BIAS, Unpacked};
use super::super::stack::{C1, OE, PE, UE};
use crate::host_fp::x87::Extended;

/// Rounding-control bits of the control word.
const RC: u16 = 0xc00;
const RC_NEAREST: u16 = 0;
const RC_DOWN: u16 = 0x400;
const RC_UP: u16 = 0x800;
/// Adjustment of the exponent by an unmasked overflow (which subtracts it) or underflow (which adds it). See SDM vol.
/// 1, 8.5.4 and 8.5.5.
const ADJUST: i32 = 24576;
/// Greatest biased exponent of a finite number.
const BIASED_MAX: i32 = 0x7ffe;

/// A number. The unit of its significand is 2^(exponent - 127). Bit 127 is set unless the number is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wide {
    pub negative: bool,
    pub exponent: i32,
    pub significand: u128,
}

/// Zero.
pub(super) const ZERO: Wide = Wide { negative: false, exponent: i32::MIN / 4, significand: 0 };
/// One.
pub(super) const ONE: Wide = Wide { negative: false, exponent: 0, significand: 1 << 127 };

impl Wide {
    /// Creates a positive number from its exponent and significand.
    pub(super) const fn new(exponent: i32, significand: u128) -> Wide {
        Wide { negative: false, exponent, significand }
    }
    /// Returns `v` times 2^exponent, negated if `negative`.
    pub(super) fn scaled(negative: bool, v: u128, exponent: i32) -> Wide {
        if v == 0 {
            return ZERO;
        }
        let shift = v.leading_zeros();
        Wide { negative, exponent: exponent + 127 - shift as i32, significand: v << shift }
    }
    pub(super) fn from_unpacked(v: Unpacked) -> Wide {
        Wide { negative: v.negative, exponent: v.exponent, significand: u128::from(v.significand) << 64 }
    }
    pub(super) fn integer(v: i32) -> Wide {
        Wide::scaled(v < 0, u128::from(v.unsigned_abs()), 0)
    }
    pub(super) fn is_zero(self) -> bool {
        self.significand == 0
    }
    pub(super) fn negate(self) -> Wide {
        Wide { negative: !self.negative, ..self }
    }
    /// Returns the number with the sign replaced.
    pub(super) fn signed(self, negative: bool) -> Wide {
        Wide { negative, ..self }
    }
    /// True if the magnitude is at least the magnitude of `other`.
    pub(super) fn reaches(self, other: Wide) -> bool {
        (self.exponent, self.significand) >= (other.exponent, other.significand)
    }

    pub(super) fn add(self, other: Wide) -> Wide {
        if other.is_zero() {
            return self;
        }
        if self.is_zero() {
            return other;
        }
        let (x, y) = if self.reaches(other) { (self, other) } else { (other, self) };
        let distance = (x.exponent - y.exponent) as u32;
        let low = match distance {
            0 => y.significand,
            1..128 => jam(y.significand, distance),
            _ => 1,
        };
        if x.negative == y.negative {
            let (sum, carry) = x.significand.overflowing_add(low);
            return match carry {
                true => Wide { exponent: x.exponent + 1, significand: jam(sum, 1) | 1 << 127, ..x },
                false => Wide { significand: sum, ..x },
            };
        }
        Wide::scaled(x.negative, x.significand - low, x.exponent - 127)
    }
    pub(super) fn sub(self, other: Wide) -> Wide {
        self.add(other.negate())
    }
    pub(super) fn mul(self, other: Wide) -> Wide {
        if self.is_zero() || other.is_zero() {
            return ZERO;
        }
        let negative = self.negative != other.negative;
        let (high, low) = multiply(self.significand, other.significand);
        let exponent = self.exponent + other.exponent;
        if high >> 127 != 0 {
            return Wide { negative, exponent: exponent + 1, significand: high | u128::from(low != 0) };
        }
        let significand = high << 1 | low >> 127 | u128::from(low << 1 != 0);
        Wide { negative, exponent, significand }
    }
    /// Divides by a nonzero number.
    pub(super) fn div(self, other: Wide) -> Wide {
        if self.is_zero() {
            return ZERO;
        }
        let negative = self.negative != other.negative;
        let divisor = other.significand;
        let less = self.significand < divisor;
        let exponent = self.exponent - other.exponent - i32::from(less);
        // The first quotient bit is one; the loop computes the other bits one at a time. The remainder stays below the
        // divisor, so twice the remainder has up to 129 bits.
        let mut rest = if less { self.significand } else { self.significand - divisor };
        let mut quotient = u128::from(!less);
        for _ in 0..if less { 128 } else { 127 } {
            let carry = rest >> 127 != 0;
            rest <<= 1;
            let fits = carry || rest >= divisor;
            if fits {
                rest = rest.wrapping_sub(divisor);
            }
            quotient = quotient << 1 | u128::from(fits);
        }
        Wide { negative, exponent, significand: quotient | u128::from(rest != 0) }
    }
    /// Divides by a small nonzero integer.
    pub(super) fn div_small(self, n: u32) -> Wide {
        if self.is_zero() {
            return ZERO;
        }
        let n = u128::from(n);
        let (quotient, rest) = (self.significand / n, self.significand % n);
        let shift = quotient.leading_zeros();
        let more = (rest << shift) / n;
        let lost = (rest << shift) % n != 0;
        let significand = quotient << shift | more | u128::from(lost);
        Wide { exponent: self.exponent - shift as i32, significand, ..self }
    }

    /// Rounds to the extended format. Returns the value to store, and the exceptions, with C1 set if rounding increased
    /// the magnitude.
    ///
    /// `inexact` means that the value is not exact, even if its last bits are zero.
    pub(super) fn round(self, cw: u16, inexact: bool) -> (Extended, u16) {
        let sign = if self.negative { 0x8000 } else { 0 };
        if self.is_zero() {
            return ((0, sign), 0);
        }
        let (mut exponent, mut biased_adjust, mut status) = (self.exponent, 0, 0);
        let (rounded, up, lost) = self.rounded(cw, self.significand);
        let lost = lost || inexact;
        let carry = rounded >> 64 != 0;
        if carry {
            exponent += 1;
        }
        if exponent + BIAS <= 0 && cw & UE != 0 {
            return self.round_denormal(cw, inexact);
        }
        if exponent + BIAS <= 0 {
            (biased_adjust, status) = (ADJUST, UE);
        }
        if exponent + BIAS > BIASED_MAX {
            if cw & OE != 0 {
                return self.overflow(cw);
            }
            (biased_adjust, status) = (-ADJUST, OE);
        }
        if lost {
            status |= PE;
        }
        if up {
            status |= C1;
        }
        let significand = if carry { 1 << 63 } else { rounded as u64 };
        let biased = (exponent + BIAS + biased_adjust).clamp(0, 0x7fff);
        ((significand, sign | biased as u16), status)
    }
    /// Rounds `significand` to its upper 64 bits. Returns three values: the result, which has up to 65 bits;
    /// true if it was rounded up; true if bits were lost.
    fn rounded(self, cw: u16, significand: u128) -> (u128, bool, bool) {
        let (kept, low) = (significand >> 64, significand as u64);
        let up = match cw & RC {
            RC_NEAREST => low > 1 << 63 || low == 1 << 63 && kept & 1 != 0,
            RC_DOWN => self.negative && low != 0,
            RC_UP => !self.negative && low != 0,
            _ => false,
        };
        (kept + u128::from(up), up, low != 0)
    }
    fn round_denormal(self, cw: u16, inexact: bool) -> (Extended, u16) {
        let sign = if self.negative { 0x8000 } else { 0 };
        let shift = (1 - self.exponent - BIAS) as u32;
        let significand = if shift < 128 { jam(self.significand, shift) } else { 1 };
        let (rounded, up, lost) = self.rounded(cw, significand);
        let mut status = if lost || inexact { UE | PE } else { 0 };
        if up {
            status |= C1;
        }
        // Rounding a denormal number up may give the least normal number, with bit 63 set and biased exponent 1.
        ((rounded as u64, sign | (rounded >> 63) as u16), status)
    }
    fn overflow(self, cw: u16) -> (Extended, u16) {
        let sign = if self.negative { 0x8000 } else { 0 };
        let away = match cw & RC {
            RC_NEAREST => true,
            RC_DOWN => self.negative,
            RC_UP => !self.negative,
            _ => false,
        };
        match away {
            true => ((1 << 63, sign | 0x7fff), OE | PE | C1),
            false => ((u64::MAX, sign | BIASED_MAX as u16), OE | PE),
        }
    }
}

/// Shifts right by 1 to 127 bits. The last bit is also set if set bits were lost.
fn jam(v: u128, by: u32) -> u128 {
    v >> by | u128::from(v << (128 - by) != 0)
}

/// Returns the high and the low half of the product.
fn multiply(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let (low, high) = (a0 * b0, a1 * b1);
    let (m, n) = (a1 * b0, a0 * b1);
    let middle = (low >> 64) + (m & LOW) + (n & LOW);
    (high + (m >> 64) + (n >> 64) + (middle >> 64), middle << 64 | low & LOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_consistent() {
        let third = ONE.div(Wide::integer(3));
        assert_eq!(third, ONE.div_small(3));
        let sum = third.add(third).add(third).sub(ONE);
        assert!(sum.is_zero() || sum.exponent < -125);
        let seven = Wide::integer(7);
        assert_eq!(seven.mul(Wide::integer(-9)), Wide::integer(-63));
        assert_eq!(Wide::integer(63).div(seven), Wide::integer(9));
        assert!(seven.sub(seven).is_zero());
    }

    #[test]
    fn rounding_follows_the_control_word() {
        let v = ONE.add(Wide::scaled(false, 1, -64));
        assert_eq!(v.round(0x37f, false), ((1 << 63, 0x3fff), PE));
        assert_eq!(v.round(0xb7f, false), (((1 << 63) + 1, 0x3fff), PE | C1));
        assert_eq!(v.negate().round(0x77f, false), (((1 << 63) + 1, 0xbfff), PE | C1));
        assert_eq!(ONE.round(0x37f, false), ((1 << 63, 0x3fff), 0));
        assert_eq!(ONE.round(0x37f, true), ((1 << 63, 0x3fff), PE));
    }

    #[test]
    fn results_out_of_range_overflow_and_underflow() {
        let large = Wide::new(20000, 1 << 127);
        assert_eq!(large.round(0x37f, true), ((1 << 63, 0x7fff), OE | PE | C1));
        assert_eq!(large.round(0xf7f, true), ((u64::MAX, 0x7ffe), OE | PE));
        let tiny = Wide::new(-16400, 1 << 127);
        assert_eq!(tiny.round(0x37f, false), ((1 << 45, 0), 0));
        assert_eq!(tiny.round(0x37f, true), ((1 << 45, 0), UE | PE));
        assert_eq!(tiny.round(0x36f, true), ((1 << 63, (24576 - 16400 + 0x3fff) as u16), UE | PE));
        let least = Wide::new(-16383, u128::MAX);
        assert_eq!(least.round(0x37f, true).0, (1 << 63, 1));
    }
}

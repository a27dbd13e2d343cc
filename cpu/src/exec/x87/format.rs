//! Unpacking and packing of the extended-precision format (SDM vol. 1, 4.2 and 8.2).

use super::stack::UE;
use crate::host_fp::x87::Extended;

/// Exponent bias.
pub(super) const BIAS: i32 = 0x3fff;
/// Adjustment of the exponent by an unmasked overflow (which subtracts it) or underflow (which adds it). See SDM vol.
/// 1, 8.5.4 and 8.5.5.
const ADJUST: i32 = 24576;

/// Kind of value that an encoding stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Zero,
    /// Denormal or pseudo-denormal.
    Denormal,
    Normal,
    Infinity,
    Nan,
    /// Unnormals, pseudo-infinities, pseudo-NaNs: invalid operands since the 80387.
    Unsupported,
}

/// A nonzero number. Bit 63 of `significand` is set, and the unit of `significand` is 2^(exponent - 63).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unpacked {
    pub negative: bool,
    pub exponent: i32,
    pub significand: u64,
}

/// Returns the kind of value that `v` stands for.
pub(super) fn classify((significand, exponent): Extended) -> Class {
    match exponent & 0x7fff {
        0 if significand == 0 => Class::Zero,
        0 => Class::Denormal,
        _ if significand >> 63 == 0 => Class::Unsupported,
        0x7fff if significand << 1 == 0 => Class::Infinity,
        0x7fff => Class::Nan,
        _ => Class::Normal,
    }
}

/// Unpacks a normal or denormal number.
pub(super) fn unpack((significand, exponent): Extended) -> Unpacked {
    let shift = significand.leading_zeros();
    // Denormals have the exponent of the least normal number.
    let biased = i32::from(exponent & 0x7fff).max(1);
    Unpacked {
        negative: exponent & 0x8000 != 0,
        exponent: biased - BIAS - shift as i32,
        significand: significand << shift,
    }
}

/// Packs a number that the format can represent exactly, as a normal or denormal number. Returns the encoding, and UE
/// if the number is tiny and the underflow exception is unmasked.
pub(super) fn pack(cw: u16, v: Unpacked) -> (Extended, u16) {
    let sign = if v.negative { 0x8000 } else { 0 };
    let biased = v.exponent + BIAS;
    if biased > 0 {
        return ((v.significand, sign | biased as u16), 0);
    }
    if cw & UE == 0 {
        return ((v.significand, sign | (biased + ADJUST) as u16), UE);
    }
    ((v.significand >> (1 - biased).min(63), sign), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denormals_survive_unpacking() {
        for v in [(1, 0), (0x7fff_ffff_ffff_ffff, 0x8000), (1 << 63, 1), (3 << 62, 0xbfff)] {
            assert_eq!(pack(0x37f, unpack(v)), (v, 0));
        }
    }

    #[test]
    fn a_pseudo_denormal_is_the_least_normal_number() {
        assert_eq!(pack(0x37f, unpack((1 << 63, 0))), ((1 << 63, 1), 0));
    }

    #[test]
    fn encodings_without_their_integer_bit_are_no_operands() {
        assert_eq!(classify((1, 0x3fff)), Class::Unsupported);
        assert_eq!(classify((0, 0x7fff)), Class::Unsupported);
        assert_eq!(classify((1 << 63, 0x7fff)), Class::Infinity);
        assert_eq!(classify((1, 0)), Class::Denormal);
    }
}

//! Packed integer arithmetic, as functions of the operands' values. [`crate::host_fp::packed`] implements most
//! instructions of SSE2. This module adds the byte shifts of SSE2, and the instructions of SSSE3 and SSE4. The MMX
//! forms of instructions use the low half of a result.

pub(super) use crate::host_fp::packed::*;

/// PSLLDQ: shifts left by `count` bytes. A count above fifteen gives zero.
#[inline(always)]
pub(super) fn shl_bytes(a: u128, count: u64) -> u128 {
    if count > 15 { 0 } else { a << (8 * count) }
}

/// PSRLDQ: shifts right by `count` bytes. A count above fifteen gives zero.
#[inline(always)]
pub(super) fn shr_bytes(a: u128, count: u64) -> u128 {
    if count > 15 { 0 } else { a >> (8 * count) }
}

/// Defines element-wise operations. Each is given by a function of two elements.
macro_rules! elementwise {
    ($($(#[$doc:meta])* $name:ident $t:ty, $n:literal, |$a:ident, $b:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub(super) fn $name(x: u128, y: u128) -> u128 {
            let mut r = 0u128;
            for n in 0..$n {
                let ($a, $b) = ((x >> (n * <$t>::BITS)) as $t, (y >> (n * <$t>::BITS)) as $t);
                let v: $t = $body;
                r |= u128::from(v.cast_unsigned()) << (n * <$t>::BITS);
            }
            r
        }
    )*};
}

elementwise! {
    /// PABSB.
    abs8 i8, 16, |_a, b| b.wrapping_abs();
    /// PABSW.
    abs16 i16, 8, |_a, b| b.wrapping_abs();
    /// PABSD.
    abs32 i32, 4, |_a, b| b.wrapping_abs();
    /// PSIGNB.
    sign8 i8, 16, |a, b| if b == 0 { 0 } else if b < 0 { a.wrapping_neg() } else { a };
    /// PSIGNW.
    sign16 i16, 8, |a, b| if b == 0 { 0 } else if b < 0 { a.wrapping_neg() } else { a };
    /// PSIGND.
    sign32 i32, 4, |a, b| if b == 0 { 0 } else if b < 0 { a.wrapping_neg() } else { a };
    /// PMULHRSW.
    mulhrs16 i16, 8, |a, b| ((((i32::from(a) * i32::from(b)) >> 14) + 1) >> 1) as i16;
    /// PMADDUBSW: multiplies unsigned bytes of the first operand by signed bytes of the second.
    maddubs16 i16, 8, |a, b| {
        let low = i32::from(a as u8) * i32::from(b as i8);
        let high = i32::from((a >> 8) as u8) * i32::from((b >> 8) as i8);
        (low + high).clamp(-0x8000, 0x7fff) as i16
    };
    /// PMULLD.
    mullo32 i32, 4, |a, b| a.wrapping_mul(b);
    /// PMULDQ.
    mul32 i64, 2, |a, b| i64::from(a as i32) * i64::from(b as i32);
    /// PMINSB.
    min8 i8, 16, |a, b| a.min(b);
    /// PMAXSB.
    max8 i8, 16, |a, b| a.max(b);
    /// PMINUW.
    minu16 i16, 8, |a, b| (a as u16).min(b as u16) as i16;
    /// PMAXUW.
    maxu16 i16, 8, |a, b| (a as u16).max(b as u16) as i16;
    /// PMINSD.
    min32 i32, 4, |a, b| a.min(b);
    /// PMAXSD.
    max32 i32, 4, |a, b| a.max(b);
    /// PMINUD.
    minu32 i32, 4, |a, b| (a as u32).min(b as u32) as i32;
    /// PMAXUD.
    maxu32 i32, 4, |a, b| (a as u32).max(b as u32) as i32;
    /// PCMPEQQ.
    eq64 i64, 2, |a, b| if a == b { -1 } else { 0 };
    /// PCMPGTQ.
    gt64 i64, 2, |a, b| if a > b { -1 } else { 0 };
}

/// PACKUSDW.
pub(super) fn packus32(a: u128, b: u128) -> u128 {
    let pack = |x: u128| {
        (0..4).fold(0u128, |r, n| {
            let v = ((x >> (32 * n)) as i32).clamp(0, 0xffff) as u128;
            r | v << (16 * n)
        })
    };
    pack(a) | pack(b) << 64
}

/// Returns element `n` of `x`. Elements have `BITS` bits.
#[inline(always)]
pub(crate) fn element<const BITS: u32>(x: u128, n: u32) -> u128 {
    (x >> (n * BITS)) & ((1 << BITS) - 1)
}

/// Applies `f` to neighbouring elements of `BITS` bits. The results from `x` form the low half of the value, and the
/// results from `y` the upper half.
fn horizontal<const BITS: u32>(x: u128, y: u128, f: impl Fn(u128, u128) -> u128) -> u128 {
    let half = 64 / BITS;
    let mask = (1u128 << BITS) - 1;
    (0..half).fold(0, |r, n| {
        let low = f(element::<BITS>(x, 2 * n), element::<BITS>(x, 2 * n + 1)) & mask;
        let high = f(element::<BITS>(y, 2 * n), element::<BITS>(y, 2 * n + 1)) & mask;
        r | low << (n * BITS) | high << (64 + n * BITS)
    })
}

fn saturate16(v: i32) -> u128 {
    v.clamp(-0x8000, 0x7fff) as u128
}

/// PHADDW.
pub(super) fn hadd16(a: u128, b: u128) -> u128 {
    horizontal::<16>(a, b, |x, y| x + y)
}
/// PHADDD.
pub(super) fn hadd32(a: u128, b: u128) -> u128 {
    horizontal::<32>(a, b, |x, y| x + y)
}
/// PHADDSW.
pub(super) fn hadds16(a: u128, b: u128) -> u128 {
    horizontal::<16>(a, b, |x, y| saturate16(i32::from(x as i16) + i32::from(y as i16)))
}
/// PHSUBW.
pub(super) fn hsub16(a: u128, b: u128) -> u128 {
    horizontal::<16>(a, b, u128::wrapping_sub)
}
/// PHSUBD.
pub(super) fn hsub32(a: u128, b: u128) -> u128 {
    horizontal::<32>(a, b, u128::wrapping_sub)
}
/// PHSUBSW.
pub(super) fn hsubs16(a: u128, b: u128) -> u128 {
    horizontal::<16>(a, b, |x, y| saturate16(i32::from(x as i16) - i32::from(y as i16)))
}

/// MPSADBW: eight sums of four absolute differences each.
pub(super) fn mpsad8(a: u128, b: u128, imm: u64) -> u128 {
    let from = (imm as u32 >> 2 & 1) * 4;
    let block = (imm as u32 & 3) * 4;
    (0..8).fold(0, |r, n| {
        let sum: u128 =
            (0..4).map(|k| element::<8>(a, from + n + k).abs_diff(element::<8>(b, block + k))).sum();
        r | sum << (16 * n)
    })
}

/// PHMINPOSUW: the least word of `b` and its index.
pub(super) fn minpos16(b: u128) -> u128 {
    let (place, least) =
        (0..8u32).map(|n| (n, element::<16>(b, n))).min_by_key(|&(_, v)| v).unwrap_or((0, 0));
    least | u128::from(place) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn horizontal_sums_take_the_first_operand_low() {
        let a = 0x0008_0007_0006_0005_0004_0003_0002_0001;
        let b = 0x8000_8000_7fff_7fff_0000_0000_ffff_0001;
        assert_eq!(hadd16(a, b), 0x0000_fffe_0000_0000_000f_000b_0007_0003);
        assert_eq!(hadds16(a, b), 0x8000_7fff_0000_0000_000f_000b_0007_0003);
        assert_eq!(hsub16(a, b) >> 64, 0x0000_0000_0000_0002);
    }

    #[test]
    fn the_least_word_is_the_first_of_equals() {
        assert_eq!(minpos16(0x0005_0003_0009_0003_0007_0008_0009_000a), 0x4_0003);
    }

    #[test]
    fn packing_dwords_saturates_unsigned() {
        let a = 0xffff_ffff_0000_ffff_0001_0000_0000_1234;
        assert_eq!(packus32(a, 0), 0x0000_ffff_ffff_1234);
    }
}

//! Shuffles, blends and other rearrangements of vector elements, as functions of the operands' values.

use super::lanes::element;

/// PSHUFD: four dwords of `b`, each chosen by two bits of `imm`.
#[inline(always)]
pub(crate) fn dwords(b: u128, imm: u64) -> u128 {
    let d = [b as u32, (b >> 32) as u32, (b >> 64) as u32, (b >> 96) as u32];
    let pick = |n: u32| d[(imm >> (2 * n) & 3) as usize];
    u128::from(u64::from(pick(0)) | u64::from(pick(1)) << 32)
        | u128::from(u64::from(pick(2)) | u64::from(pick(3)) << 32) << 64
}

/// PSHUFW: four words of `b`, each chosen by two bits of `imm`. For PSHUFLW and PSHUFHW, `b` is the half of the
/// operand that the instruction shuffles.
#[inline(always)]
pub(super) fn words(b: u64, imm: u64) -> u64 {
    let w = [b as u16, (b >> 16) as u16, (b >> 32) as u16, (b >> 48) as u16];
    let pick = |n: u32| u64::from(w[(imm >> (2 * n) & 3) as usize]);
    pick(0) | pick(1) << 16 | pick(2) << 32 | pick(3) << 48
}

/// SHUFPS: two dwords of `a` in the low half, two of `b` in the upper half.
#[inline(always)]
pub(super) fn shufps(a: u128, b: u128, imm: u64) -> u128 {
    (dwords(a, imm) & u128::from(u64::MAX)) | dwords(b, imm) & !u128::from(u64::MAX)
}

/// SHUFPD: one qword of `a` in the low half, one of `b` in the upper half.
#[inline(always)]
pub(crate) fn shufpd(a: u128, b: u128, imm: u64) -> u128 {
    element::<64>(a, imm as u32 & 1) | element::<64>(b, imm as u32 >> 1 & 1) << 64
}

/// PSHUFB: each byte of `control` selects a byte of `a`, or zero.
pub(super) fn bytes(a: u128, control: u128) -> u128 {
    let from = a.to_le_bytes();
    let r = control.to_le_bytes().map(|c| if c & 0x80 != 0 { 0 } else { from[(c & 15) as usize] });
    u128::from_le_bytes(r)
}

/// PALIGNR: shifts the concatenation of `a` (upper half) and `b` right by `count` bytes. Returns the low half.
pub(super) fn align(a: u128, b: u128, count: u64) -> u128 {
    match count {
        0 => b,
        1..16 => b >> (8 * count) | a << (128 - 8 * count),
        16..32 => a >> (8 * (count - 16)),
        _ => 0,
    }
}

/// Returns the bytes of `b` whose mask byte has its top bit set, and the other bytes of `a`.
pub(crate) fn blend_bytes(a: u128, b: u128, mask: u128) -> u128 {
    let top = mask >> 7 & 0x0101_0101_0101_0101_0101_0101_0101_0101;
    select(a, b, top * 0xff)
}

/// Like [`blend_bytes`], with dwords.
pub(crate) fn blend_dwords(a: u128, b: u128, mask: u128) -> u128 {
    let top = mask >> 31 & 0x0000_0001_0000_0001_0000_0001_0000_0001;
    select(a, b, top * 0xffff_ffff)
}

/// Like [`blend_bytes`], with qwords.
pub(crate) fn blend_qwords(a: u128, b: u128, mask: u128) -> u128 {
    let top = mask >> 63 & 0x0000_0000_0000_0001_0000_0000_0000_0001;
    select(a, b, top * u128::from(u64::MAX))
}

/// Returns the elements of `b` whose bit in `imm` is set, and the other elements of `a`.
pub(crate) fn blend_imm<const BITS: u32>(a: u128, b: u128, imm: u64) -> u128 {
    let one = (1u128 << BITS) - 1;
    let mask = (0..128 / BITS).filter(|n| imm >> n & 1 != 0).fold(0, |m, n| m | one << (n * BITS));
    select(a, b, mask)
}

fn select(a: u128, b: u128, mask: u128) -> u128 {
    a & !mask | b & mask
}

/// Returns `a` with element `n` replaced by the low bits of `v`. Elements have `BITS` bits.
#[inline(always)]
pub(crate) fn insert<const BITS: u32>(a: u128, v: u64, n: u64) -> u128 {
    let at = (n as u32 % (128 / BITS)) * BITS;
    let one = ((1u128 << BITS) - 1) << at;
    a & !one | u128::from(v) << at & one
}

/// INSERTPS. `v` is the source dword, which the caller has selected.
pub(crate) fn insertps(a: u128, v: u64, imm: u64) -> u128 {
    let r = insert::<32>(a, v, imm >> 4 & 3);
    let keep = (0..4).filter(|n| imm >> n & 1 == 0).fold(0u128, |m, n| m | 0xffff_ffff << (32 * n));
    r & keep
}

/// Extends the low elements of `b` from `FROM` bits to `TO` bits each.
pub(super) fn extend<const FROM: u32, const TO: u32>(b: u128, signed: bool) -> u128 {
    let to_mask = (1u128 << TO) - 1;
    (0..128 / TO).fold(0, |r, n| {
        let v = element::<FROM>(b, n);
        let v = if signed && v >> (FROM - 1) != 0 { v | (u128::MAX << FROM) } else { v };
        r | (v & to_mask) << (n * TO)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u128 = 0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100;
    const B: u128 = 0x1f1e_1d1c_1b1a_1918_1716_1514_1312_1110;

    #[test]
    fn shuffles_follow_the_immediate() {
        assert_eq!(dwords(A, 0b00_01_10_11), 0x0302_0100_0706_0504_0b0a_0908_0f0e_0d0c);
        assert_eq!(words(A as u64, 0b11_10_00_00), 0x0706_0504_0100_0100);
        assert_eq!(shufps(A, B, 0b11_00_11_00), 0x1f1e_1d1c_1312_1110_0f0e_0d0c_0302_0100);
        assert_eq!(shufpd(A, B, 0b01), 0x1716_1514_1312_1110_0f0e_0d0c_0b0a_0908);
        assert_eq!(align(B, A, 4), 0x1312_1110_0f0e_0d0c_0b0a_0908_0706_0504);
        assert_eq!(align(B, A, 20), B >> 32);
        assert_eq!(align(B, A, 32), 0);
    }

    #[test]
    fn a_control_byte_with_its_top_bit_gives_zero() {
        assert_eq!(bytes(B, 0x80ff_0f00), 0x1f10 | (0x10 * 0x0101_0101_0101_0101_0101_0101u128) << 32);
    }

    #[test]
    fn blends_take_whole_elements() {
        assert_eq!(blend_imm::<32>(A, B, 0b1001), 0x1f1e_1d1c_0b0a_0908_0706_0504_1312_1110);
        assert_eq!(blend_qwords(A, B, 1 << 127), B >> 64 << 64 | A & u128::from(u64::MAX));
        assert_eq!(blend_dwords(A, B, 1 << 31), A & !0xffff_ffff | B & 0xffff_ffff);
        assert_eq!(blend_bytes(A, B, 0x80), A & !0xff | 0x10);
    }

    #[test]
    fn insertps_zeroes_after_inserting() {
        assert_eq!(insertps(u128::MAX, 0, 0x28), 0x0000_0000_0000_0000_ffff_ffff_ffff_ffff);
    }

    #[test]
    fn widening_keeps_the_sign_when_asked() {
        assert_eq!(extend::<8, 32>(0x80_7f_ff_01, true), 0xffff_ff80_0000_007f_ffff_ffff_0000_0001);
        assert_eq!(extend::<8, 32>(0x80_7f_ff_01, false), 0x0000_0080_0000_007f_0000_00ff_0000_0001);
        assert_eq!(extend::<32, 64>(0x8000_0000_0000_0001, true), 0xffff_ffff_8000_0000_0000_0000_0000_0001);
    }
}

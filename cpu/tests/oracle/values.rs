//! Random values that are likely to find defects: ends of ranges, few or many set bits, and every class of
//! floating-point number.

use everett_cpu::state::FpuState;

use crate::rng::Rng;

/// Draws an integer operand.
pub(crate) fn integer(rng: &mut Rng) -> u64 {
    match rng.below(8) {
        0 => rng.below(4),
        1 => u64::MAX - rng.below(4),
        2 => {
            // Close to the end of a range of 8, 16, 32 or 64 bits.
            let bits = rng.pick(&[7, 8, 15, 16, 31, 32, 63]);
            (1u64 << bits).wrapping_add(rng.below(3)).wrapping_sub(1)
        }
        3 => rng.next() >> rng.below(64),
        4 => 1u64 << rng.below(64),
        5 => {
            let byte = rng.pick(&[0x00u64, 0x01, 0x7f, 0x80, 0xff, 0x55, 0x99]);
            byte * 0x0101_0101_0101_0101
        }
        _ => rng.next(),
    }
}

/// Draws a single-precision number.
pub(crate) fn single(rng: &mut Rng) -> u32 {
    let sign = (rng.next() as u32) & 0x8000_0000;
    let fraction = rng.next() as u32 & 0x7f_ffff;
    sign | match rng.below(12) {
        0 => 0,
        1 => fraction,                                    // denormal
        2 => 1,                                           // the least denormal
        3 => 0x7f80_0000,                                 // infinity
        4 => 0x7fc0_0000 | fraction,                      // quiet NaN
        5 => 0x7f80_0000 | (fraction & 0x3f_ffff).max(1), // signalling NaN
        6 => 0x7f7f_ffff - (fraction & 3),                // the greatest
        7 => 0x0080_0000 + (fraction & 3),                // the least normal
        8 => (rng.below(1 << 26) as f32).to_bits(),
        9 => (rng.below(2000) as f32 / 4.0).to_bits(),
        10 => 0x3f80_0000u32.wrapping_add((rng.below(64) as u32) << 20),
        _ => rng.next() as u32 & 0x7fff_ffff,
    }
}

/// Draws a double-precision number.
pub(crate) fn double(rng: &mut Rng) -> u64 {
    let sign = rng.next() & 1 << 63;
    let fraction = rng.next() >> 12;
    sign | match rng.below(14) {
        0 => 0,
        1 => fraction,
        2 => 1,
        3 => 0x7ff0_0000_0000_0000,
        4 => 0x7ff8_0000_0000_0000 | fraction,
        5 => 0x7ff0_0000_0000_0000 | (fraction & ((1 << 51) - 1)).max(1),
        6 => 0x7fef_ffff_ffff_ffff - (fraction & 3),
        7 => 0x0010_0000_0000_0000 + (fraction & 3),
        8 => (rng.below(1 << 54) as f64).to_bits(),
        9 => (rng.below(2000) as f64 / 4.0).to_bits(),
        10 => 0x3ff0_0000_0000_0000u64.wrapping_add(rng.below(64) << 50),
        // Close to the ends of single precision and of 32-bit integers, where conversions round, overflow and
        // underflow.
        11 => ((0x36a0 + rng.below(32)) << 48) | fraction >> rng.below(52),
        12 => ((0x41d0 + rng.below(64)) << 48) | fraction >> rng.below(52),
        _ => rng.next() >> 1,
    }
}

/// Draws a number in the x87's extended format: the significand, and the word with sign and exponent.
pub(crate) fn extended(rng: &mut Rng) -> (u64, u16) {
    const INTEGER: u64 = 1 << 63;
    let sign = (rng.next() as u16) & 0x8000;
    let fraction = rng.next() >> 1;
    let (significand, exponent) = match rng.below(16) {
        0 => (0, 0),
        1 => (fraction, 0),                              // denormal
        2 => (INTEGER | fraction, 0),                    // pseudo-denormal
        3 => (INTEGER, 0x7fff),                          // infinity
        4 => (INTEGER | 1 << 62 | fraction, 0x7fff),     // quiet NaN
        5 => (INTEGER | (fraction >> 2).max(1), 0x7fff), // signalling NaN
        6 => (fraction, 0x7fff),                         // pseudo-NaN, pseudo-infinity
        7 => (fraction, rng.next() as u16 & 0x7fff),     // unnormal
        8 => (u64::MAX - (fraction & 3), 0x7ffe),        // the greatest
        9 => (INTEGER | fraction & 3, 1),                // the least normal
        10 => from_u64(rng.below(2000)),
        11 => {
            let (significand, exponent) = from_u64(rng.next() >> rng.below(64));
            (significand, exponent.saturating_sub(rng.below(70) as u16))
        }
        // Close to the ends of double and single precision, and to integers.
        12 => (INTEGER | fraction, 0x3fff - 1080 + rng.below(70) as u16),
        13 => (INTEGER | fraction, 0x3fff + rng.below(70) as u16),
        14 => (INTEGER | fraction, 0x3fff - 155 + rng.below(310) as u16),
        _ => (INTEGER | fraction, rng.next() as u16 & 0x7fff),
    };
    (significand, sign | exponent)
}

fn from_u64(v: u64) -> (u64, u16) {
    let zeros = v.leading_zeros();
    if v == 0 { (0, 0) } else { (v << zeros, 0x3fff + 63 - zeros as u16) }
}

/// Type of the values in a vector register or a memory operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Integers,
    Singles,
    Doubles,
    Extended,
}

/// Draws sixteen bytes with values of this type.
pub(crate) fn vector(shape: Shape, rng: &mut Rng) -> u128 {
    let two = |a: u64, b: u64| u128::from(a) | u128::from(b) << 64;
    match shape {
        Shape::Integers => match rng.below(3) {
            0 => {
                // Bytes, words or doublewords with small values.
                let element = rng.pick(&[8, 16, 32]);
                (0..128 / element).fold(0, |v, i| v | u128::from(integer(rng) as u8) << (i * element))
            }
            1 => {
                let mut v = 0;
                for i in 0..16 {
                    v |= u128::from(rng.pick(&[0u8, 0, 1, 0x7f, 0x80, 0xff, b'a', b'b', b'z'])) << (i * 8);
                }
                v
            }
            _ => two(integer(rng), integer(rng)),
        },
        Shape::Singles => (0..4).fold(0, |v, i| v | u128::from(single(rng)) << (i * 32)),
        Shape::Doubles => two(double(rng), double(rng)),
        Shape::Extended => {
            let (significand, exponent) = extended(rng);
            two(significand, u64::from(exponent))
        }
    }
}

/// Draws x87 and SSE state. `shape` is the type of the values in XMM registers.
pub(crate) fn fpu(shape: Shape, rng: &mut Rng) -> FpuState {
    let masks = |rng: &mut Rng| if rng.one_in(3) { rng.next() as u16 & 0x3f } else { 0x3f };
    let fcw = 0x40 | masks(rng) | (rng.pick(&[0, 2, 3, 3]) << 8) | ((rng.below(4) as u16) << 10);
    let mut fsw = (rng.next() as u16) & 0x7f00;
    if rng.one_in(4) {
        fsw |= rng.next() as u16 & 0x7f;
    }
    // A pending exception makes most x87 instructions raise #MF, so it is rare here.
    if fsw & !fcw & 0x3f != 0 && !rng.one_in(4) {
        fsw &= !0x3f | fcw;
    }
    if fsw & !fcw & 0x3f != 0 {
        fsw |= 0x8080;
    }
    let ftw = match rng.below(4) {
        0 => rng.next() as u8,
        1 => !(1 << rng.below(8)),
        2 => (1 << rng.below(8)) | (1 << rng.below(8)),
        _ => 0xff,
    };
    let mxcsr_masks = if rng.one_in(4) { rng.next() as u32 & 0x1f80 } else { 0x1f80 };
    let flags = if rng.one_in(2) { rng.next() as u32 & 0x3f } else { 0 };
    let rounding = (rng.below(4) as u32) << 13;
    let flush = if rng.one_in(3) { rng.next() as u32 & 0x8040 } else { 0 };
    let mut state = FpuState {
        r: std::array::from_fn(|_| extended(rng)),
        fcw,
        fsw,
        ftw,
        fop: rng.next() as u16 & 0x7ff,
        fip: rng.next() >> 17,
        fdp: rng.next() >> 17,
        mxcsr: mxcsr_masks | flags | rounding | flush,
        xmm: std::array::from_fn(|_| vector(shape, rng)),
    };
    // MMX registers get integers instead of floating-point numbers.
    if shape == Shape::Integers && rng.one_in(2) {
        for r in &mut state.r {
            *r = (vector(shape, rng) as u64, 0xffff);
        }
    }
    state
}

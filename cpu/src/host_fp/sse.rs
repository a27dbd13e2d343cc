//! SSE and SSE2 arithmetic under a given MXCSR.
//!
//! The instruction runs under `mxcsr`, in which the functions mask all exceptions. The returned status is MXCSR after
//! the instruction. If the flags in `mxcsr` are clear, the status has exactly the flags that the instruction raised.
#![allow(unsafe_code)]

use super::vector::{bits, vector};
use core::arch::asm;
use core::arch::x86_64::__m128i;

/// MXCSR that Rust code expects: round to nearest, all exceptions masked, no flags.
pub(crate) const HOST: u32 = 0x1f80;

/// Bits 7-12 of MXCSR, which mask all exceptions.
pub(crate) const MASKS: u32 = 0x1f80;

/// Defines functions with two vector operands and one vector result. Scalar instructions replace only the low element
/// of `a`.
macro_rules! two_operands {
    ($($name:ident $instruction:literal)*) => {$(
        #[doc = concat!("`", $instruction, "`: the result and MXCSR afterwards.")]
        #[inline]
        pub(crate) fn $name(mxcsr: u32, a: u128, b: u128) -> (u128, u32) {
            let mut status = mxcsr | MASKS;
            let mut r: __m128i = vector(a);
            // SAFETY: baseline SSE2. All exceptions are masked, and the block restores the host's MXCSR before it ends.
            // The only memory that it touches is `status` and a constant.
            unsafe {
                asm!(
                    "ldmxcsr [{status}]",
                    concat!($instruction, " {r}, {b}"),
                    "stmxcsr [{status}]",
                    "ldmxcsr [{host}]",
                    status = in(reg) &mut status,
                    host = in(reg) &HOST,
                    r = inout(xmm_reg) r,
                    b = in(xmm_reg) vector(b),
                    options(nostack),
                );
            }
            (bits(r), status)
        }
    )*};
}

two_operands! {
    addps "addps" addpd "addpd" addss "addss" addsd "addsd"
    subps "subps" subpd "subpd" subss "subss" subsd "subsd"
    mulps "mulps" mulpd "mulpd" mulss "mulss" mulsd "mulsd"
    divps "divps" divpd "divpd" divss "divss" divsd "divsd"
    minps "minps" minpd "minpd" minss "minss" minsd "minsd"
    maxps "maxps" maxpd "maxpd" maxss "maxss" maxsd "maxsd"
    sqrtps "sqrtps" sqrtpd "sqrtpd" sqrtss "sqrtss" sqrtsd "sqrtsd"
    cmpeqps "cmpeqps" cmpltps "cmpltps" cmpleps "cmpleps" cmpunordps "cmpunordps"
    cmpeqpd "cmpeqpd" cmpltpd "cmpltpd" cmplepd "cmplepd" cmpunordpd "cmpunordpd"
    cmpeqss "cmpeqss" cmpltss "cmpltss" cmpless "cmpless" cmpunordss "cmpunordss"
    cmpeqsd "cmpeqsd" cmpltsd "cmpltsd" cmplesd "cmplesd" cmpunordsd "cmpunordsd"
    cvtdq2ps "cvtdq2ps" cvtps2dq "cvtps2dq" cvttps2dq "cvttps2dq"
    cvtpd2dq "cvtpd2dq" cvttpd2dq "cvttpd2dq" cvtps2pd "cvtps2pd" cvtpd2ps "cvtpd2ps"
    cvtss2sd "cvtss2sd" cvtsd2ss "cvtsd2ss"
}

/// Defines ordered compares that set RFLAGS.
macro_rules! compares {
    ($($name:ident $instruction:literal)*) => {$(
        #[doc = concat!("`", $instruction, "`: ZF, PF and CF in their RFLAGS places, and MXCSR afterwards.")]
        #[inline]
        pub(crate) fn $name(mxcsr: u32, a: u128, b: u128) -> (u64, u32) {
            let mut status = mxcsr | MASKS;
            let flags: u64;
            // SAFETY: as in `two_operands`; the flags are read through AH.
            unsafe {
                asm!(
                    "ldmxcsr [{status}]",
                    concat!($instruction, " {a}, {b}"),
                    "lahf",
                    "stmxcsr [{status}]",
                    "ldmxcsr [{host}]",
                    status = in(reg) &mut status,
                    host = in(reg) &HOST,
                    a = in(xmm_reg) vector(a),
                    b = in(xmm_reg) vector(b),
                    out("rax") flags,
                    options(nostack),
                );
            }
            (flags >> 8 & 0x45, status)
        }
    )*};
}

compares! {
    comiss "comiss" comisd "comisd" ucomiss "ucomiss" ucomisd "ucomisd"
}

/// Defines conversions to a general register.
macro_rules! to_integer {
    ($($name:ident $instruction:literal $modifier:literal)*) => {$(
        #[doc = concat!("`", $instruction, "` to a general register, and MXCSR afterwards.")]
        #[inline]
        pub(crate) fn $name(mxcsr: u32, a: u128) -> (u64, u32) {
            let mut status = mxcsr | MASKS;
            let r: u64;
            // SAFETY: as in `two_operands`.
            unsafe {
                asm!(
                    "ldmxcsr [{status}]",
                    concat!($instruction, " {r", $modifier, "}, {a}"),
                    "stmxcsr [{status}]",
                    "ldmxcsr [{host}]",
                    status = in(reg) &mut status,
                    host = in(reg) &HOST,
                    a = in(xmm_reg) vector(a),
                    r = out(reg) r,
                    options(nostack),
                );
            }
            (r, status)
        }
    )*};
}

to_integer! {
    cvtss2si32 "cvtss2si" ":e" cvtss2si64 "cvtss2si" ":r"
    cvtsd2si32 "cvtsd2si" ":e" cvtsd2si64 "cvtsd2si" ":r"
    cvttss2si32 "cvttss2si" ":e" cvttss2si64 "cvttss2si" ":r"
    cvttsd2si32 "cvttsd2si" ":e" cvttsd2si64 "cvttsd2si" ":r"
}

/// Defines conversions from a general register to the low element. The other elements of the result are zero.
macro_rules! from_integer {
    ($($name:ident $instruction:literal $modifier:literal)*) => {$(
        #[doc = concat!("`", $instruction, "` from a general register, and MXCSR afterwards.")]
        #[inline]
        pub(crate) fn $name(mxcsr: u32, a: u64) -> (u128, u32) {
            let mut status = mxcsr | MASKS;
            let mut r: __m128i = vector(0);
            // SAFETY: as in `two_operands`.
            unsafe {
                asm!(
                    "ldmxcsr [{status}]",
                    concat!($instruction, " {r}, {a", $modifier, "}"),
                    "stmxcsr [{status}]",
                    "ldmxcsr [{host}]",
                    status = in(reg) &mut status,
                    host = in(reg) &HOST,
                    r = inout(xmm_reg) r,
                    a = in(reg) a,
                    options(nostack),
                );
            }
            (bits(r), status)
        }
    )*};
}

from_integer! {
    cvtsi2ss32 "cvtsi2ss" ":e" cvtsi2ss64 "cvtsi2ss" ":r"
    cvtsi2sd64 "cvtsi2sd" ":r"
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u128 = 0x3ff0_0000_0000_0000;
    const THREE: u128 = 0x4008_0000_0000_0000;

    #[test]
    fn control_bits_are_the_callers_and_flags_come_back() {
        assert_eq!(divsd(0x1f80, ONE, THREE), (0x3fd5_5555_5555_5555, 0x1fa0));
        assert_eq!(divsd(0x5f80, ONE, THREE), (0x3fd5_5555_5555_5556, 0x5fa0));
        assert_eq!(divsd(0x1f80, ONE, 0), (0x7ff0 << 48, 0x1f84));
        // A denormal operand sets DE, but counts as zero if DAZ is set.
        assert_eq!(addsd(0x1f80, ONE, 1), (ONE, 0x1fa2));
        assert_eq!(addsd(0x1fc0, ONE, 1), (ONE, 0x1fc0));
        // A tiny result stays, but becomes zero if FTZ is set.
        let least = 0x0010_0000_0000_0000;
        assert_eq!(mulsd(0x1f80, least, 0x3fe0 << 48), (least >> 1, 0x1f80));
        assert_eq!(mulsd(0x9f80, least, 0x3fe0 << 48), (0, 0x9fb0));
    }

    #[test]
    fn the_first_of_two_nans_is_the_result() {
        let (a, b) = (0x7ff8_0000_0000_0001, 0x7ff0_0000_0000_0002);
        assert_eq!(addsd(0x1f80, a, b), (a, 0x1f81));
        assert_eq!(addsd(0x1f80, b, a), (0x7ff8_0000_0000_0002, 0x1f81));
    }

    #[test]
    fn the_hosts_rounding_is_back_afterwards() {
        for mxcsr in [0x1f80, 0x3f80, 0x5f80, 0x7f80, 0xffff] {
            addpd(mxcsr, u128::MAX, ONE);
            let tenth = std::hint::black_box(1.0f64) / std::hint::black_box(10.0);
            assert_eq!(tenth.to_bits(), 0.1f64.to_bits());
        }
    }
}

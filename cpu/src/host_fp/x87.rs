//! x87 arithmetic under a given control word, which may unmask exceptions.
//!
//! Each function returns the destination and the status word after the instruction. The status flags are clear before
//! the instruction, so afterwards they show what the instruction raised. TOP in the status word is that of the host and
//! has no meaning. If an unmasked exception prevents the result, the destination keeps its old value, and the status
//! word shows the exception.
//!
//! The host's register stack is empty before and after each block of assembly. Each block ends with `fninit`, which
//! sets the default control word. An unmasked exception becomes pending in the host's x87 unit. `fnclex` clears it
//! before the next instruction that would deliver it.
#![allow(unsafe_code)]

use core::arch::asm;

/// Contents of an x87 register: the significand, then the word with sign and exponent.
pub(crate) type Extended = (u64, u16);

/// Memory image of an x87 register.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Image {
    significand: u64,
    exponent: u16,
}

impl From<Extended> for Image {
    fn from((significand, exponent): Extended) -> Image {
        Image { significand, exponent }
    }
}
impl From<Image> for Extended {
    fn from(i: Image) -> Extended {
        (i.significand, i.exponent)
    }
}

/// Emits one block: loads the operands, executes the instruction under the control word, stores status and result, and
/// resets the x87 unit.
macro_rules! block {
    ($load:literal, $run:expr, $store:literal, $cw:ident, $sw:ident, $($operands:tt)*) => {
        // SAFETY: x87 is part of x86-64. Before and after the block the stack is empty and all exceptions are masked.
        // Operands are local variables of the right size. All eight stack registers are declared as clobbered.
        unsafe {
            asm!(
                $load,
                "fnclex",
                "fldcw word ptr [{cw}]",
                $run,
                "fnstsw ax",
                "fnclex",
                $store,
                "fninit",
                cw = in(reg) &$cw,
                $($operands)*
                out("ax") $sw,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
    };
}

macro_rules! arithmetic {
    ($($name:ident $single:ident $double:ident $instruction:literal)*) => {$(
        #[doc = concat!("`", $instruction, "`: `a` is the destination, `b` the source.")]
        pub(crate) fn $name(cw: u16, a: Extended, b: Extended) -> (Extended, u16) {
            let (mut a, b) = (Image::from(a), Image::from(b));
            let sw: u16;
            block!(
                "fld tbyte ptr [{b}]\n fld tbyte ptr [{a}]",
                concat!($instruction, " st(0), st(1)"),
                "fstp tbyte ptr [{a}]",
                cw, sw, a = in(reg) &mut a, b = in(reg) &b,
            );
            (a.into(), sw)
        }
        #[doc = concat!("`", $instruction, "` with a single-precision source in memory.")]
        pub(crate) fn $single(cw: u16, a: Extended, b: u32) -> (Extended, u16) {
            let mut a = Image::from(a);
            let sw: u16;
            block!(
                "fld tbyte ptr [{a}]",
                concat!($instruction, " dword ptr [{b}]"),
                "fstp tbyte ptr [{a}]",
                cw, sw, a = in(reg) &mut a, b = in(reg) &b,
            );
            (a.into(), sw)
        }
        #[doc = concat!("`", $instruction, "` with a double-precision source in memory.")]
        pub(crate) fn $double(cw: u16, a: Extended, b: u64) -> (Extended, u16) {
            let mut a = Image::from(a);
            let sw: u16;
            block!(
                "fld tbyte ptr [{a}]",
                concat!($instruction, " qword ptr [{b}]"),
                "fstp tbyte ptr [{a}]",
                cw, sw, a = in(reg) &mut a, b = in(reg) &b,
            );
            (a.into(), sw)
        }
    )*};
}
arithmetic! {
    add add_single add_double "fadd"
    sub sub_single sub_double "fsub"
    subr subr_single subr_double "fsubr"
    mul mul_single mul_double "fmul"
    div div_single div_double "fdiv"
    divr divr_single divr_double "fdivr"
}

macro_rules! unary {
    ($($name:ident $instruction:literal)*) => {$(
        #[doc = concat!("`", $instruction, "` of `a`.")]
        pub(crate) fn $name(cw: u16, a: Extended) -> (Extended, u16) {
            let mut a = Image::from(a);
            let sw: u16;
            block!(
                "fld tbyte ptr [{a}]", $instruction, "fstp tbyte ptr [{a}]",
                cw, sw, a = in(reg) &mut a,
            );
            (a.into(), sw)
        }
    )*};
}
unary! {
    sqrt "fsqrt"
    round "frndint"
}

/// `fscale`: multiplies `a` by 2 to the power of `b`, truncated to an integer.
pub(crate) fn scale(cw: u16, a: Extended, b: Extended) -> (Extended, u16) {
    let (mut a, b) = (Image::from(a), Image::from(b));
    let sw: u16;
    block!(
        "fld tbyte ptr [{b}]\n fld tbyte ptr [{a}]", "fscale", "fstp tbyte ptr [{a}]",
        cw, sw, a = in(reg) &mut a, b = in(reg) &b,
    );
    (a.into(), sw)
}

/// `fxtract`: returns the exponent and the significand of `a`. After an unmasked exception, both have no meaning.
pub(crate) fn extract(cw: u16, a: Extended) -> (Extended, Extended, u16) {
    let mut a = Image::from(a);
    let mut exponent = Image::default();
    let sw: u16;
    block!(
        "fldz\n fld tbyte ptr [{a}]", "fxtract", "fstp tbyte ptr [{a}]\n fstp tbyte ptr [{e}]",
        cw, sw, a = in(reg) &mut a, e = in(reg) &mut exponent,
    );
    (exponent.into(), a.into(), sw)
}

macro_rules! compare {
    ($($name:ident $instruction:literal)*) => {$(
        #[doc = concat!("`", $instruction, "`: the status word.")]
        pub(crate) fn $name(cw: u16, a: Extended, b: Extended) -> u16 {
            let (a, b) = (Image::from(a), Image::from(b));
            let sw: u16;
            block!(
                "fld tbyte ptr [{b}]\n fld tbyte ptr [{a}]", $instruction, "",
                cw, sw, a = in(reg) &a, b = in(reg) &b,
            );
            sw
        }
    )*};
}
compare! {
    com "fcom st(1)"
    ucom "fucom st(1)"
}

/// `fcom` with a single-precision source in memory. Returns the status word.
pub(crate) fn com_single(cw: u16, a: Extended, b: u32) -> u16 {
    let a = Image::from(a);
    let sw: u16;
    block!("fld tbyte ptr [{a}]", "fcom dword ptr [{b}]", "", cw, sw, a = in(reg) &a, b = in(reg) &b,);
    sw
}

/// `fcom` with a double-precision source in memory. Returns the status word.
pub(crate) fn com_double(cw: u16, a: Extended, b: u64) -> u16 {
    let a = Image::from(a);
    let sw: u16;
    block!("fld tbyte ptr [{a}]", "fcom qword ptr [{b}]", "", cw, sw, a = in(reg) &a, b = in(reg) &b,);
    sw
}

macro_rules! load {
    ($($name:ident $t:ty, $instruction:literal)*) => {$(
        #[doc = concat!("`", $instruction, "`. The value is meaningless if an unmasked exception prevented the load.")]
        pub(crate) fn $name(cw: u16, b: $t) -> (Extended, u16) {
            let mut a = Image::default();
            let sw: u16;
            // If an exception prevents the load, `fstp` stores this zero.
            block!(
                "fldz", concat!($instruction, " [{b}]"), "fstp tbyte ptr [{a}]",
                cw, sw, a = in(reg) &mut a, b = in(reg) &b,
            );
            (a.into(), sw)
        }
    )*};
}
load! {
    load_single u32, "fld dword ptr"
    load_double u64, "fld qword ptr"
}

macro_rules! store {
    ($($name:ident $t:ty, $instruction:literal)*) => {$(
        #[doc = concat!("`", $instruction, "`: the stored value, or zero if an unmasked exception prevented the store.")]
        pub(crate) fn $name(cw: u16, a: Extended) -> ($t, u16) {
            let a = Image::from(a);
            let mut b: $t = 0;
            let sw: u16;
            block!(
                "fld tbyte ptr [{a}]", concat!($instruction, " [{b}]"), "",
                cw, sw, a = in(reg) &a, b = in(reg) &mut b,
            );
            (b, sw)
        }
    )*};
}
store! {
    store_single u32, "fst dword ptr"
    store_double u64, "fst qword ptr"
    store_int16 u16, "fist word ptr"
    store_int32 u32, "fist dword ptr"
    store_int64 u64, "fistp qword ptr"
    store_bcd u128, "fbstp tbyte ptr"
}

/// Transcendental functions of the host's processor. Tests compare them with those of Everett's own CPU.
#[cfg(test)]
pub(crate) mod functions {
    use super::{Extended, Image, asm};

    unary! {
        sin "fsin"
        cos "fcos"
        power "f2xm1"
    }

    macro_rules! of_two {
        ($($name:ident $instruction:literal)*) => {$(
            #[doc = concat!("`", $instruction, "` of ST(1) and ST(0).")]
            pub(crate) fn $name(cw: u16, y: Extended, x: Extended) -> (Extended, u16) {
                let (mut y, x) = (Image::from(y), Image::from(x));
                let sw: u16;
                block!(
                    "fld tbyte ptr [{y}]\n fld tbyte ptr [{x}]", $instruction, "fstp tbyte ptr [{y}]",
                    cw, sw, y = in(reg) &mut y, x = in(reg) &x,
                );
                (y.into(), sw)
            }
        )*};
    }
    of_two! {
        arctangent "fpatan"
        logarithm "fyl2x"
        logarithm_one_plus "fyl2xp1"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Extended = (1 << 63, 0x3fff);
    const ZERO: Extended = (0, 0);
    const MASKED: u16 = 0x37f;

    #[test]
    fn rounding_and_precision_control_are_the_callers() {
        let three = (3 << 62, 0x4000);
        let by = |cw| div(cw, ONE, three).0.0;
        assert_eq!(by(MASKED), 0xaaaa_aaaa_aaaa_aaab);
        assert_eq!(by(MASKED | 0xc00), 0xaaaa_aaaa_aaaa_aaaa);
        assert_eq!(by(0x27f), 0xaaaa_aaaa_aaaa_a800);
        assert_eq!(by(0x07f), 0xaaaa_ab00_0000_0000);
    }

    #[test]
    fn unmasked_exceptions_are_reported_and_leave_the_host_alone() {
        let (r, status) = div(0x340, ONE, ZERO);
        assert_eq!((r, status & 0x84), (ONE, 0x84));
        let huge = (1 << 63, 0x7ffe);
        let (r, status) = mul(0x340, huge, huge);
        assert_eq!(status & 0x88, 0x88);
        assert_eq!(r, (1 << 63, (0x7ffe * 2 - 0x3fff - 24576) as u16));
        let (v, status) = store_single(0x340, huge);
        assert_eq!((v, status & 0x88), (0, 0x88));
        // The next operation starts with an empty stack and no pending exception.
        for _ in 0..20 {
            let (r, status) = add(MASKED, ONE, ONE);
            assert_eq!((r, status & 0xff), ((1 << 63, 0x4000), 0));
        }
    }

    #[test]
    fn signalling_nans_in_memory_keep_their_payload() {
        let quiet = (0xc000_0000_0000_0001, 0x7fff);
        let (r, status) = add_single(MASKED, quiet, 0x7f80_0001);
        assert_eq!((r, status & 1), (quiet, 1));
        let (r, _) = add_single(MASKED, ONE, 0x7f80_0001);
        assert_eq!(r, (0xc000_0100_0000_0000, 0x7fff));
    }
}

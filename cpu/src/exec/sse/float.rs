//! Floating-point arithmetic under the guest's MXCSR: exceptions, and the quick path.
//!
//! The host's instruction computes the result and its exception flags, with all exceptions masked. [`settle`] then
//! handles these flags as hardware does (SDM vol. 1, 11.5): it sets them in MXCSR, and raises #XM if one of them is
//! unmasked. If it raises #XM, the instruction stores no result.
//!
//! The quick path needs default control bits in MXCSR, a precision flag that is already set, and ordinary operands and
//! results. An operation then changes only its destination, and the guest's control bits equal the host's. The quick
//! path therefore consists of one host instruction and a few comparisons.

use super::precision::Shape;
use crate::core::{Core, cr4};
use crate::host_fp::sse as host;
use crate::stop::{Stop, vector};

/// Exception flags of MXCSR.
pub(crate) const IE: u32 = 1;
pub(crate) const DE: u32 = 1 << 1;
const ZE: u32 = 1 << 2;
pub(crate) const OE: u32 = 1 << 3;
pub(crate) const UE: u32 = 1 << 4;
pub(crate) const PE: u32 = 1 << 5;
pub(crate) const FLAGS: u32 = 0x3f;
/// Control bit of MXCSR: denormal operands count as zeros.
pub(crate) const DAZ: u32 = 1 << 6;
/// Flags of the exceptions that hardware detects before the computation.
const PRE: u32 = IE | DE | ZE;
/// Masks of overflow and underflow, and flush-to-zero.
const OM: u32 = 1 << 10;
const UM: u32 = 1 << 11;
const FZ: u32 = 1 << 15;

/// True if MXCSR masks all exceptions.
#[inline(always)]
pub(crate) fn all_masked(mxcsr: u32) -> bool {
    mxcsr & host::MASKS == host::MASKS
}

/// True if MXCSR permits the quick path.
#[inline(always)]
pub(super) fn quick(core: &Core) -> bool {
    core.fpu.mxcsr | 0x1f == 0x1fbf
}

/// Runs a host operation that can neither overflow nor underflow, under the guest's MXCSR.
#[inline(always)]
pub(crate) fn run<R>(core: &mut Core, f: impl Fn(u32) -> (R, u32)) -> Result<R, Stop> {
    let guest = core.fpu.mxcsr;
    let (r, status) = f(guest & !FLAGS | host::MASKS);
    settle(core, status & FLAGS)?;
    Ok(r)
}

/// Runs a host operation on `a` and `b` under the guest's MXCSR. `shape` describes the operation, which may overflow or
/// underflow.
#[inline]
pub(super) fn run_shaped(
    core: &mut Core,
    shape: Shape,
    a: u128,
    b: u128,
    f: impl Fn(u32, u128, u128) -> (u128, u32),
) -> Result<u128, Stop> {
    let guest = core.fpu.mxcsr;
    let control = guest & !FLAGS | host::MASKS;
    if guest & (OM | UM) == OM | UM {
        let (r, status) = f(control, a, b);
        settle(core, status & FLAGS)?;
        return Ok(r);
    }
    // If the guest unmasks underflow, flush-to-zero has no effect, and every tiny result raises UE, even an exact one.
    // The host runs the operation with underflow masked. It then sets UE for an exact tiny result only if flush-to-zero
    // is on. A second run with flush-to-zero therefore detects all tiny results.
    let ignored = if guest & UM == 0 { FZ } else { 0 };
    let (r, status) = f(control & !ignored, a, b);
    let mut raised = status & FLAGS;
    if guest & UM == 0 {
        raised |= f(control | FZ, a, b).1 & UE;
    }
    if raised & !(guest >> 7) & (OE | UE) != 0 {
        raised = raised & !PE | shape.precision(guest & !ignored, a, b);
    }
    settle(core, raised)?;
    Ok(r)
}

/// Sets the raised flags in MXCSR, and raises #XM if one of them is unmasked. If one of the exceptions in [`PRE`] is
/// raised and unmasked, there is no computation, and only flags in [`PRE`] are set.
#[inline(always)]
pub(crate) fn settle(core: &mut Core, raised: u32) -> Result<(), Stop> {
    let unmasked = raised & !(core.fpu.mxcsr >> 7);
    if unmasked != 0 {
        return Err(unmasked_exception(core, raised, unmasked));
    }
    core.fpu.mxcsr |= raised;
    Ok(())
}

#[cold]
fn unmasked_exception(core: &mut Core, raised: u32, unmasked: u32) -> Stop {
    core.fpu.mxcsr |= if unmasked & PRE != 0 { raised & PRE } else { raised };
    if core.cr4 & cr4::OSXMMEXCPT != 0 { core.raise(vector::XM) } else { core.ud() }
}
/// Bits of a number in an SSE floating-point format.
pub(super) trait Format: Copy {
    /// True if the number is normal: not zero, denormal, infinite or NaN.
    fn normal(self) -> bool;
    /// True if the number is zero or normal.
    fn ordinary(self) -> bool;
    /// True if the number is finite and its magnitude is at least twice the least normal number. An operation
    /// with this result cannot have underflowed.
    fn safe(self) -> bool;
    /// True if the number is a zero of either sign.
    fn zero(self) -> bool;
    /// True if the number is neither NaN nor denormal.
    fn comparable(self) -> bool;
}

macro_rules! format {
    ($t:ty, $fraction:literal, $exponents:literal) => {
        impl Format for $t {
            #[inline(always)]
            fn normal(self) -> bool {
                (self << 1).wrapping_sub(1 << ($fraction + 1)) < ($exponents - 1) << ($fraction + 1)
            }
            #[inline(always)]
            fn ordinary(self) -> bool {
                self.normal() || self.zero()
            }
            #[inline(always)]
            fn safe(self) -> bool {
                (self << 1).wrapping_sub(2 << ($fraction + 1)) < ($exponents - 2) << ($fraction + 1)
            }
            #[inline(always)]
            fn zero(self) -> bool {
                self << 1 == 0
            }
            #[inline(always)]
            fn comparable(self) -> bool {
                self.ordinary() || self << 1 == $exponents << ($fraction + 1)
            }
        }
    };
}
format!(u32, 23, 0xff);
format!(u64, 52, 0x7ff);

/// Operations of the quick path. Each returns `None` if its operands or result require the host's instruction under the
/// guest's MXCSR.
pub(super) mod quickly {
    use super::Format;

    macro_rules! operations {
        ($($t:ty, $f:ty, $add:ident $sub:ident $mul:ident $div:ident $sqrt:ident $min:ident $max:ident;)*) => {$(
            #[inline(always)]
            pub(in super::super) fn $add(a: $t, b: $t) -> Option<$t> {
                let r = (<$f>::from_bits(a) + <$f>::from_bits(b)).to_bits();
                // Sums near the least normal number are exact, so `ordinary` is enough. Products and quotients need
                // `safe`.
                (a.ordinary() && b.ordinary() && (r.ordinary())).then_some(r)
            }
            #[inline(always)]
            pub(in super::super) fn $sub(a: $t, b: $t) -> Option<$t> {
                let r = (<$f>::from_bits(a) - <$f>::from_bits(b)).to_bits();
                (a.ordinary() && b.ordinary() && (r.ordinary())).then_some(r)
            }
            #[inline(always)]
            pub(in super::super) fn $mul(a: $t, b: $t) -> Option<$t> {
                let r = (<$f>::from_bits(a) * <$f>::from_bits(b)).to_bits();
                (a.ordinary() && b.ordinary() && (r.safe() || a.zero() || b.zero())).then_some(r)
            }
            #[inline(always)]
            pub(in super::super) fn $div(a: $t, b: $t) -> Option<$t> {
                let r = (<$f>::from_bits(a) / <$f>::from_bits(b)).to_bits();
                (a.ordinary() && b.normal() && (r.safe() || a.zero())).then_some(r)
            }
            #[inline(always)]
            pub(in super::super) fn $sqrt(_: $t, b: $t) -> Option<$t> {
                let r = <$f>::from_bits(b).sqrt().to_bits();
                (b.zero() || b.normal() && b >> (<$t>::BITS - 1) == 0).then_some(r)
            }
            #[inline(always)]
            pub(in super::super) fn $min(a: $t, b: $t) -> Option<$t> {
                let r = if <$f>::from_bits(a) < <$f>::from_bits(b) { a } else { b };
                (a.comparable() && b.comparable()).then_some(r)
            }
            #[inline(always)]
            pub(in super::super) fn $max(a: $t, b: $t) -> Option<$t> {
                let r = if <$f>::from_bits(a) > <$f>::from_bits(b) { a } else { b };
                (a.comparable() && b.comparable()).then_some(r)
            }
        )*};
    }
    operations! {
        u32, f32, add32 sub32 mul32 div32 sqrt32 min32 max32;
        u64, f64, add64 sub64 mul64 div64 sqrt64 min64 max64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns zeros, the least and greatest number of each class, NaNs, and numbers whose sums and products are near
    /// the limits, with both signs.
    fn doubles() -> Vec<u64> {
        let magnitudes = [
            0,
            1,
            0x000f_ffff_ffff_ffff,
            0x0010_0000_0000_0000,
            0x0010_0000_0000_0001,
            0x001f_ffff_ffff_ffff,
            0x0020_0000_0000_0000,
            0x1ff0_0000_0000_0000,
            0x2000_0000_0000_0001,
            0x3fe0_0000_0000_0000,
            0x3fef_ffff_ffff_ffff,
            0x3ff0_0000_0000_0000,
            0x3ff0_0000_0000_0001,
            0x4008_0000_0000_0000,
            0x41df_ffff_ffc0_0000,
            0x41e0_0000_0000_0000,
            0x43e0_0000_0000_0000,
            0x5fff_ffff_ffff_ffff,
            0x7fef_ffff_ffff_ffff,
            0x7ff0_0000_0000_0000,
            0x7ff0_0000_0000_0001,
            0x7ff8_0000_0000_1234,
        ];
        magnitudes.into_iter().flat_map(|m| [m, m | 1 << 63]).collect()
    }
    fn singles() -> Vec<u32> {
        let magnitudes = [
            0,
            1,
            0x007f_ffff,
            0x0080_0000,
            0x0080_0001,
            0x00ff_ffff,
            0x0100_0000,
            0x1f80_0000,
            0x2000_0001,
            0x3f00_0000,
            0x3f7f_ffff,
            0x3f80_0000,
            0x3f80_0001,
            0x4040_0000,
            0x4eff_ffff,
            0x4f00_0000,
            0x5f7f_ffff,
            0x7f7f_ffff,
            0x7f80_0000,
            0x7f80_0001,
            0x7fc0_1234,
        ];
        magnitudes.into_iter().flat_map(|m| [m, m | 1 << 31]).collect()
    }

    /// Under an MXCSR that permits the quick path, every result of the quick path equals the host's. The host raises at
    /// most the precision flag, which is already set.
    #[test]
    fn the_quick_path_is_the_hosts_arithmetic() {
        macro_rules! agree {
            ($values:expr, $t:ty, $($quick:ident $host:ident)*) => {$(
                for &a in &$values {
                    for &b in &$values {
                        if let Some(r) = quickly::$quick(a, b) {
                            let (expected, status) = host::$host(0x1fa0, u128::from(a), u128::from(b));
                            assert_eq!(r, expected as $t, "{} {a:#x} {b:#x}", stringify!($host));
                            assert_eq!(status, 0x1fa0, "{} {a:#x} {b:#x}", stringify!($host));
                        }
                    }
                }
            )*};
        }
        agree!(doubles(), u64, add64 addsd sub64 subsd mul64 mulsd div64 divsd sqrt64 sqrtsd min64 minsd max64 maxsd);
        agree!(singles(), u32, add32 addss sub32 subss mul32 mulss div32 divss sqrt32 sqrtss min32 minss max32 maxss);
    }

    #[test]
    fn the_quick_path_takes_ordinary_numbers() {
        let bits = |v: f64| v.to_bits();
        assert_eq!(quickly::mul64(bits(1.5), bits(-3.0)), Some(bits(-4.5)));
        assert_eq!(quickly::add64(bits(0.1), bits(0.0)), Some(bits(0.1)));
        assert_eq!(quickly::div64(bits(1.0), 0), None);
        assert_eq!(quickly::mul64(bits(1e-300), bits(1e-300)), None);
        assert_eq!(quickly::sqrt64(0, bits(-1.0)), None);
    }
}

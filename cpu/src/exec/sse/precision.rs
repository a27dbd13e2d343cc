//! The precision flag (PE) of operations whose overflow or underflow is unmasked.
//!
//! If overflow or underflow is masked, PE also covers the loss from fitting the result into the exponent range of the
//! format. If the exception is unmasked, hardware rounds to the precision of the format with an unbounded exponent, and
//! sets PE if that rounding was inexact (SDM vol. 1, 4.9.1.4-6). x87 arithmetic with reduced precision control gives
//! the same PE, because its exponent range is large enough.

use crate::host_fp::{sse, x87};

const DAZ: u32 = 1 << 6;
const PE: u32 = 1 << 5;
const OM: u32 = 1 << 10;
const UM: u32 = 1 << 11;

/// An operation that can overflow or underflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Add,
    Sub,
    Mul,
    Div,
    /// Conversion from double to single precision.
    Narrow,
}

/// Description of a packed operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Operation on even elements, and operation on odd elements.
    pub steps: [Step; 2],
    /// Number of elements.
    pub count: u32,
    /// True for double precision, false for single precision.
    pub double: bool,
}

impl Shape {
    /// Returns the shape of a packed operation that applies `step` to all `count` elements.
    pub(super) const fn all(step: Step, count: u32, double: bool) -> Shape {
        Shape { steps: [step; 2], count, double }
    }
    /// Returns PE if the operation on `a` and `b` raises it under the control bits in `mxcsr`, else 0.
    pub(super) fn precision(&self, mxcsr: u32, a: u128, b: u128) -> u32 {
        let width = if self.double { 64 } else { 32 };
        let mask = u128::MAX >> (128 - width);
        (0..self.count)
            .map(|n| {
                let (a, b) = (a >> (n * width) & mask, b >> (n * width) & mask);
                self.element(self.steps[(n & 1) as usize], mxcsr, a, b)
            })
            .fold(0, |r, flag| r | flag)
    }

    fn element(&self, step: Step, mxcsr: u32, a: u128, b: u128) -> u32 {
        let narrow = step == Step::Narrow;
        // A conversion has only the second operand. Adding zero to it rounds it.
        let (x, y) = if narrow {
            (self.extended(mxcsr, b), (0, 0))
        } else {
            (self.extended(mxcsr, a), self.extended(mxcsr, b))
        };
        let to_double = self.double && !narrow;
        let cw = 0x3f | (mxcsr >> 3 & 0xc00) as u16 | if to_double { 0x200 } else { 0 };
        let ((significand, exponent), status) = match step {
            Step::Add | Step::Narrow => x87::add(cw, x, y),
            Step::Sub => x87::sub(cw, x, y),
            Step::Mul => x87::mul(cw, x, y),
            Step::Div => x87::div(cw, x, y),
        };
        let exponent = i32::from(exponent & 0x7fff) - 0x3fff;
        let (least, greatest) = if to_double { (-1022, 1023) } else { (-126, 127) };
        let number = significand != 0 && exponent != 0x4000;
        let unbounded =
            number && (mxcsr & OM == 0 && exponent > greatest || mxcsr & UM == 0 && exponent < least);
        if unbounded {
            return u32::from(status) & PE;
        }
        let scalar = match (step, self.double) {
            (Step::Add, true) => sse::addsd,
            (Step::Add, false) => sse::addss,
            (Step::Sub, true) => sse::subsd,
            (Step::Sub, false) => sse::subss,
            (Step::Mul, true) => sse::mulsd,
            (Step::Mul, false) => sse::mulss,
            (Step::Div, true) => sse::divsd,
            (Step::Div, false) => sse::divss,
            (Step::Narrow, _) => sse::cvtsd2ss,
        };
        scalar(mxcsr & !0x3f, a, b).1 & PE
    }

    /// Returns an operand in the extended format. If MXCSR has DAZ set, a denormal operand becomes zero.
    fn extended(&self, mxcsr: u32, v: u128) -> x87::Extended {
        let exponent = if self.double { 0x7ff << 52 } else { 0xff << 23 };
        let v = if mxcsr & DAZ != 0 && v & exponent == 0 { 0 } else { v };
        let (r, _) =
            if self.double { x87::load_double(0x37f, v as u64) } else { x87::load_single(0x37f, v as u32) };
        r
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNMASKED: u32 = 0;
    const MASKED: u32 = OM | UM;

    #[test]
    fn an_unmasked_overflow_is_inexact_only_beyond_the_precision() {
        let add = Shape::all(Step::Add, 1, true);
        let (greatest, next) = (0x7fef_ffff_ffff_ffff, 0x7fef_ffff_ffff_fffe);
        assert_eq!(add.precision(UNMASKED, greatest, greatest), 0);
        assert_eq!(add.precision(MASKED, greatest, greatest), PE);
        assert_eq!(add.precision(UNMASKED, greatest, next), PE);
    }

    #[test]
    fn an_unmasked_underflow_is_inexact_only_beyond_the_precision() {
        let mul = Shape::all(Step::Mul, 1, false);
        let (least, third) = (0x0080_0001, 0x3eaa_aaab);
        assert_eq!(mul.precision(UNMASKED, least, 0x3f00_0000), 0);
        assert_eq!(mul.precision(MASKED, least, 0x3f00_0000), PE);
        assert_eq!(mul.precision(UNMASKED, least, third), PE);
        let narrow = Shape::all(Step::Narrow, 1, true);
        assert_eq!(narrow.precision(UNMASKED, 0, 0x3700_0000_0000_0000), 0);
        assert_eq!(narrow.precision(UNMASKED, 0, u128::from(1e-40f64.to_bits())), PE);
    }

    #[test]
    fn other_elements_keep_their_own_flag() {
        let add = Shape::all(Step::Add, 4, false);
        let (one, greatest, tiny) = (0x3f80_0000u128, 0x7f7f_ffffu128, 0x3300_0000u128);
        assert_eq!(add.precision(UNMASKED, one << 64 | greatest, one << 64 | greatest), 0);
        assert_eq!(add.precision(UNMASKED, one << 64 | greatest, tiny << 64 | greatest), PE);
    }
}

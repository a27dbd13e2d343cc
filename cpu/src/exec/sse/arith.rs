//! Arithmetic: ADD, SUB, MUL, DIV, SQRT, MIN and MAX, packed and scalar.

use super::float::{self, quick, quickly};
use super::operand::{merge, set_xmm, usable, xmm, xmm_op};
use super::precision::{Shape, Step};
use crate::core::Core;
use crate::host_fp::sse as host;
use crate::op::{Kind, Op};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, Mnemonic};

/// Scalar operation on the low element. Uses the quick path (see `float`) if possible, otherwise the host's instruction
/// under the guest's MXCSR.
macro_rules! scalar {
    ($i:expr, $op:expr, $t:ty, $bits:literal, $quick:path, $host:path, $step:expr) => {
        xmm_op!($i, $op, $t, |c, o, a, b| {
            match $quick(a as $t, b as $t) {
                Some(r) if quick(c) => merge::<$bits>(a, u128::from(r)),
                _ => slow(c, a, b, $host, $step.map(|step| Shape::all(step, 1, $bits == 64)))?,
            }
        })
    };
}

/// Packed operation on all elements. Uses the quick path if possible, otherwise the host's instruction under the
/// guest's MXCSR.
macro_rules! packed {
    ($i:expr, $op:expr, $t:ty, $n:literal, $quick:path, $host:path, $step:expr) => {
        xmm_op!($i, $op, u128, |c, o, a, b| {
            let mut r = Some(0u128);
            for n in 0..$n {
                let at = n * <$t>::BITS;
                let v = $quick((a >> at) as $t, (b >> at) as $t);
                r = r.zip(v).map(|(r, v)| r | u128::from(v) << at);
            }
            match r {
                Some(r) if quick(c) => r,
                _ => slow(c, a, b, $host, $step.map(|step| Shape::all(step, $n, $n == 2)))?,
            }
        })
    };
}

/// Executes the operation on the host, under the guest's MXCSR.
#[inline(never)]
fn slow(
    core: &mut Core,
    a: u128,
    b: u128,
    f: fn(u32, u128, u128) -> (u128, u32),
    shape: Option<Shape>,
) -> Result<u128, Stop> {
    match shape {
        Some(shape) => float::run_shaped(core, shape, a, b, f),
        None => float::run(core, |mxcsr| f(mxcsr, a, b)),
    }
}

const ADD: Option<Step> = Some(Step::Add);
const SUB: Option<Step> = Some(Step::Sub);
const MUL: Option<Step> = Some(Step::Mul);
const DIV: Option<Step> = Some(Step::Div);
/// Marks an operation that can neither overflow nor underflow.
const NONE: Option<Step> = None;

/// Chooses the handler of an arithmetic instruction. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    match i.mnemonic() {
        Addsd => scalar!(i, op, u64, 64, quickly::add64, host::addsd, ADD),
        Subsd => scalar!(i, op, u64, 64, quickly::sub64, host::subsd, SUB),
        Mulsd => scalar!(i, op, u64, 64, quickly::mul64, host::mulsd, MUL),
        Divsd => scalar!(i, op, u64, 64, quickly::div64, host::divsd, DIV),
        Minsd => scalar!(i, op, u64, 64, quickly::min64, host::minsd, NONE),
        Maxsd => scalar!(i, op, u64, 64, quickly::max64, host::maxsd, NONE),
        Sqrtsd => scalar!(i, op, u64, 64, quickly::sqrt64, host::sqrtsd, NONE),
        Addss => scalar!(i, op, u32, 32, quickly::add32, host::addss, ADD),
        Subss => scalar!(i, op, u32, 32, quickly::sub32, host::subss, SUB),
        Mulss => scalar!(i, op, u32, 32, quickly::mul32, host::mulss, MUL),
        Divss => scalar!(i, op, u32, 32, quickly::div32, host::divss, DIV),
        Minss => scalar!(i, op, u32, 32, quickly::min32, host::minss, NONE),
        Maxss => scalar!(i, op, u32, 32, quickly::max32, host::maxss, NONE),
        Sqrtss => scalar!(i, op, u32, 32, quickly::sqrt32, host::sqrtss, NONE),
        Addpd => packed!(i, op, u64, 2, quickly::add64, host::addpd, ADD),
        Subpd => packed!(i, op, u64, 2, quickly::sub64, host::subpd, SUB),
        Mulpd => packed!(i, op, u64, 2, quickly::mul64, host::mulpd, MUL),
        Divpd => packed!(i, op, u64, 2, quickly::div64, host::divpd, DIV),
        Minpd => packed!(i, op, u64, 2, quickly::min64, host::minpd, NONE),
        Maxpd => packed!(i, op, u64, 2, quickly::max64, host::maxpd, NONE),
        Sqrtpd => packed!(i, op, u64, 2, quickly::sqrt64, host::sqrtpd, NONE),
        Addps => packed!(i, op, u32, 4, quickly::add32, host::addps, ADD),
        Subps => packed!(i, op, u32, 4, quickly::sub32, host::subps, SUB),
        Mulps => packed!(i, op, u32, 4, quickly::mul32, host::mulps, MUL),
        Divps => packed!(i, op, u32, 4, quickly::div32, host::divps, DIV),
        Minps => packed!(i, op, u32, 4, quickly::min32, host::minps, NONE),
        Maxps => packed!(i, op, u32, 4, quickly::max32, host::maxps, NONE),
        Sqrtps => packed!(i, op, u32, 4, quickly::sqrt32, host::sqrtps, NONE),
        _ => None,
    }
}

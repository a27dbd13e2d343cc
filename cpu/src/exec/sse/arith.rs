//! ADD, SUB, MUL, DIV, SQRT, MIN and MAX, packed and scalar.

use super::float::{self, quick, quickly};
use super::operand::{merge, set_xmm, usable, xmm, xmm_op};
use crate::core::Core;
use crate::host_fp::sse as host;
use crate::op::{Kind, Op};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, Mnemonic};

/// The low element of a register, computed quickly or by the host.
macro_rules! scalar {
    ($i:expr, $op:expr, $t:ty, $bits:literal, $quick:path, $host:path) => {
        xmm_op!($i, $op, $t, |c, o, a, b| {
            match $quick(a as $t, b as $t) {
                Some(r) if quick(c) => merge::<$bits>(a, u128::from(r)),
                _ => slow(c, a, b, $host)?,
            }
        })
    };
}

/// All elements, computed quickly or by the host.
macro_rules! packed {
    ($i:expr, $op:expr, $t:ty, $n:literal, $quick:path, $host:path) => {
        xmm_op!($i, $op, u128, |c, o, a, b| {
            let mut r = Some(0u128);
            for n in 0..$n {
                let at = n * <$t>::BITS;
                let v = $quick((a >> at) as $t, (b >> at) as $t);
                r = r.zip(v).map(|(r, v)| r | u128::from(v) << at);
            }
            match r {
                Some(r) if quick(c) => r,
                _ => slow(c, a, b, $host)?,
            }
        })
    };
}

/// By the host, under the guest's MXCSR.
#[inline(never)]
fn slow(core: &mut Core, a: u128, b: u128, f: fn(u32, u128, u128) -> (u128, u32)) -> Result<u128, Stop> {
    float::run(core, |mxcsr| f(mxcsr, a, b))
}

/// Lower an arithmetic instruction.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    match i.mnemonic() {
        Addsd => scalar!(i, op, u64, 64, quickly::add64, host::addsd),
        Subsd => scalar!(i, op, u64, 64, quickly::sub64, host::subsd),
        Mulsd => scalar!(i, op, u64, 64, quickly::mul64, host::mulsd),
        Divsd => scalar!(i, op, u64, 64, quickly::div64, host::divsd),
        Minsd => scalar!(i, op, u64, 64, quickly::min64, host::minsd),
        Maxsd => scalar!(i, op, u64, 64, quickly::max64, host::maxsd),
        Sqrtsd => scalar!(i, op, u64, 64, quickly::sqrt64, host::sqrtsd),
        Addss => scalar!(i, op, u32, 32, quickly::add32, host::addss),
        Subss => scalar!(i, op, u32, 32, quickly::sub32, host::subss),
        Mulss => scalar!(i, op, u32, 32, quickly::mul32, host::mulss),
        Divss => scalar!(i, op, u32, 32, quickly::div32, host::divss),
        Minss => scalar!(i, op, u32, 32, quickly::min32, host::minss),
        Maxss => scalar!(i, op, u32, 32, quickly::max32, host::maxss),
        Sqrtss => scalar!(i, op, u32, 32, quickly::sqrt32, host::sqrtss),
        Addpd => packed!(i, op, u64, 2, quickly::add64, host::addpd),
        Subpd => packed!(i, op, u64, 2, quickly::sub64, host::subpd),
        Mulpd => packed!(i, op, u64, 2, quickly::mul64, host::mulpd),
        Divpd => packed!(i, op, u64, 2, quickly::div64, host::divpd),
        Minpd => packed!(i, op, u64, 2, quickly::min64, host::minpd),
        Maxpd => packed!(i, op, u64, 2, quickly::max64, host::maxpd),
        Sqrtpd => packed!(i, op, u64, 2, quickly::sqrt64, host::sqrtpd),
        Addps => packed!(i, op, u32, 4, quickly::add32, host::addps),
        Subps => packed!(i, op, u32, 4, quickly::sub32, host::subps),
        Mulps => packed!(i, op, u32, 4, quickly::mul32, host::mulps),
        Divps => packed!(i, op, u32, 4, quickly::div32, host::divps),
        Minps => packed!(i, op, u32, 4, quickly::min32, host::minps),
        Maxps => packed!(i, op, u32, 4, quickly::max32, host::maxps),
        Sqrtps => packed!(i, op, u32, 4, quickly::sqrt32, host::sqrtps),
        _ => None,
    }
}

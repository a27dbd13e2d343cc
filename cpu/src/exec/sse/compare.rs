//! Compares that give a mask (CMPccPS and its relatives), and compares that set RFLAGS.

use super::float::{self, Format};
use super::operand::{load, merge, set_xmm, usable, xmm, xmm_op};
use crate::core::Core;
use crate::flags::{Flags, bits};
use crate::host_fp::sse as host;
use crate::mem::Prim;
use crate::op::operand::is_memory;
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

/// Packed compare: an element is all ones if the predicate holds, else zero. `$invert` negates the predicate.
macro_rules! packed {
    ($i:expr, $op:expr, $host:path, $invert:literal) => {
        xmm_op!($i, $op, u128, |c, o, a, b| {
            let r = float::run(c, |mxcsr| $host(mxcsr, a, b))?;
            if $invert { !r } else { r }
        })
    };
}

/// Scalar compare, like `packed` for the low element.
macro_rules! scalar {
    ($i:expr, $op:expr, $t:ty, $f:ty, $bits:literal, $quick:expr, $host:path, $invert:literal) => {
        xmm_op!($i, $op, $t, |c, o, a, b| {
            let (x, y) = (a as $t, b as $t);
            let holds: fn($f, $f) -> bool = $quick;
            let r = if x.comparable() && y.comparable() {
                if holds(<$f>::from_bits(x), <$f>::from_bits(y)) { u128::MAX } else { 0 }
            } else {
                float::run(c, |mxcsr| $host(mxcsr, a, b))?
            };
            merge::<$bits>(a, if $invert { !r } else { r })
        })
    };
}

/// Chooses the handler of a compare. Returns `None` for other instructions. Predicates 4-7 negate 0-3 (SDM vol. 2A,
/// table 3-1). The other bits of the immediate have no effect.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    macro_rules! packed_by_predicate {
        ($eq:path, $lt:path, $le:path, $unord:path) => {
            match op.imm & 7 {
                0 => packed!(i, op, $eq, false),
                1 => packed!(i, op, $lt, false),
                2 => packed!(i, op, $le, false),
                3 => packed!(i, op, $unord, false),
                4 => packed!(i, op, $eq, true),
                5 => packed!(i, op, $lt, true),
                6 => packed!(i, op, $le, true),
                _ => packed!(i, op, $unord, true),
            }
        };
    }
    macro_rules! scalar_by_predicate {
        ($t:ty, $f:ty, $bits:literal, $eq:path, $lt:path, $le:path, $unord:path) => {
            match op.imm & 7 {
                0 => scalar!(i, op, $t, $f, $bits, |a, b| a == b, $eq, false),
                1 => scalar!(i, op, $t, $f, $bits, |a, b| a < b, $lt, false),
                2 => scalar!(i, op, $t, $f, $bits, |a, b| a <= b, $le, false),
                3 => scalar!(i, op, $t, $f, $bits, |_, _| false, $unord, false),
                4 => scalar!(i, op, $t, $f, $bits, |a, b| a == b, $eq, true),
                5 => scalar!(i, op, $t, $f, $bits, |a, b| a < b, $lt, true),
                6 => scalar!(i, op, $t, $f, $bits, |a, b| a <= b, $le, true),
                _ => scalar!(i, op, $t, $f, $bits, |_, _| false, $unord, true),
            }
        };
    }
    use Mnemonic::*;
    match i.mnemonic() {
        Cmpps => packed_by_predicate!(host::cmpeqps, host::cmpltps, host::cmpleps, host::cmpunordps),
        Cmppd => packed_by_predicate!(host::cmpeqpd, host::cmpltpd, host::cmplepd, host::cmpunordpd),
        Cmpss => {
            scalar_by_predicate!(u32, f32, 32, host::cmpeqss, host::cmpltss, host::cmpless, host::cmpunordss)
        }
        Cmpsd => {
            scalar_by_predicate!(u64, f64, 64, host::cmpeqsd, host::cmpltsd, host::cmplesd, host::cmpunordsd)
        }
        Comiss => flags::<Comiss32>(i, op),
        Ucomiss => flags::<Ucomiss32>(i, op),
        Comisd => flags::<Comisd64>(i, op),
        Ucomisd => flags::<Ucomisd64>(i, op),
        _ => None,
    }
}

/// Compare that sets RFLAGS.
trait Ordered {
    type Bits: Prim + Format;
    fn less_equal(a: Self::Bits, b: Self::Bits) -> (bool, bool);
    fn host(mxcsr: u32, a: u128, b: u128) -> (u64, u32);
}

macro_rules! ordered {
    ($($name:ident $t:ty, $f:ty, $host:path;)*) => {$(
        struct $name;
        impl Ordered for $name {
            type Bits = $t;
            #[inline(always)]
            fn less_equal(a: $t, b: $t) -> (bool, bool) {
                let (a, b) = (<$f>::from_bits(a), <$f>::from_bits(b));
                (a < b, a == b)
            }
            #[inline(always)]
            fn host(mxcsr: u32, a: u128, b: u128) -> (u64, u32) {
                $host(mxcsr, a, b)
            }
        }
    )*};
}
ordered! {
    Comiss32 u32, f32, host::comiss;
    Ucomiss32 u32, f32, host::ucomiss;
    Comisd64 u64, f64, host::comisd;
    Ucomisd64 u64, f64, host::ucomisd;
}

fn flags<C: Ordered>(i: &Instruction, op: &mut Op) -> Option<Kind> {
    fn compare<C: Ordered>(core: &mut Core, a: u128, b: u128) -> Flow {
        let (x, y) = (C::Bits::narrow(a), C::Bits::narrow(b));
        if x.comparable() && y.comparable() {
            let (less, equal) = C::less_equal(x, y);
            // `res` is 0 if the operands are equal, which sets ZF, and 1 if not. PF must be clear in both cases, so the
            // low byte of `res` must have odd parity. 1 has odd parity. 0 has even parity, so bit 8 of `aux` inverts
            // bit 0 of this byte.
            let (res, parity) = if equal { (0, 1 << 8) } else { (1, 0) };
            core.flags = Flags { res, carry: u64::from(less) * (3 << 62), aux: parity };
            return Ok(());
        }
        let f = float::run(core, |mxcsr| C::host(mxcsr, a, b))?;
        core.flags = Flags::from_bits(f & (bits::ZF | bits::PF | bits::CF));
        Ok(())
    }
    fn reg<C: Ordered>(core: &mut Core, op: &Op) -> Flow {
        usable(core)?;
        let (a, b) = (xmm(core, op.dst), xmm(core, op.src));
        compare::<C>(core, a, b)
    }
    fn mem<C: Ordered>(core: &mut Core, op: &Op) -> Flow {
        usable(core)?;
        let b = load::<C::Bits>(core, op)?;
        let a = xmm(core, op.dst);
        compare::<C>(core, a, b)
    }
    op.run = if is_memory(i, 1) { mem::<C> } else { reg::<C> };
    Some(Kind::Straight)
}

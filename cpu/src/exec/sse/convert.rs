//! Conversions between integers and floating point, and between single and double precision.

use super::float::{self, Format, quick};
use super::operand::{enter_mmx, handler, load, merge, mm, mmx_usable, set_mm, set_xmm, usable, xmm, xmm_op};
use super::precision::{Shape, Step};
use crate::core::Core;
use crate::host_fp::sse as host;
use crate::mem::Prim;
use crate::op::operand::{is_gpr, is_memory, width};
use crate::op::{Kind, Op};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, Mnemonic};

const LOW: u128 = u64::MAX as u128;

/// Chooses the handler of a conversion. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    macro_rules! packed {
        ($mem:ty, $host:path) => {
            xmm_op!(i, op, $mem, |c, o, a, b| float::run(c, |mxcsr| $host(mxcsr, 0, b))?)
        };
    }
    let wide_result = is_gpr(i, 0) && width(i, 0) == 8;
    let wide_source = width(i, 1) == 8;
    macro_rules! to_integer {
        ($t:ty, $f:ident, $f64:ident) => {
            if wide_result { to_gpr::<$t, $f64>(i, op) } else { to_gpr::<$t, $f>(i, op) }
        };
    }
    /// Converts two elements into an MMX register. Elements outside the mask `$used` are zeroed, so they raise no
    /// exception. As on hardware, the x87 state becomes MMX state even if #XM follows.
    macro_rules! to_mm {
        ($mem:ty, $host:path, $used:expr) => {
            if is_memory(i, 1) {
                handler!(op, |core, o| {
                    usable(core)?;
                    mmx_usable(core)?;
                    let b = load::<$mem>(core, o)? & $used;
                    enter_mmx(core);
                    let r = float::run(core, |mxcsr| $host(mxcsr, 0, b))?;
                    set_mm(core, o.dst, r as u64);
                    Ok(())
                })
            } else {
                handler!(op, |core, o| {
                    usable(core)?;
                    mmx_usable(core)?;
                    let b = xmm(core, o.src) & $used;
                    enter_mmx(core);
                    let r = float::run(core, |mxcsr| $host(mxcsr, 0, b))?;
                    set_mm(core, o.dst, r as u64);
                    Ok(())
                })
            }
        };
    }
    use Mnemonic::*;
    match i.mnemonic() {
        Cvtdq2ps => packed!(u128, host::cvtdq2ps),
        Cvtps2dq => packed!(u128, host::cvtps2dq),
        Cvttps2dq => packed!(u128, host::cvttps2dq),
        Cvtpd2dq => packed!(u128, host::cvtpd2dq),
        Cvttpd2dq => packed!(u128, host::cvttpd2dq),
        Cvtpd2ps => xmm_op!(i, op, u128, |c, o, a, b| {
            float::run_shaped(c, Shape::all(Step::Narrow, 2, true), 0, b, host::cvtpd2ps)?
        }),
        Cvtps2pd => packed!(u64, host::cvtps2pd),
        Cvtdq2pd => xmm_op!(i, op, u64, |c, o, a, b| doubles(b as u64)),
        Cvtss2sd => xmm_op!(i, op, u32, |c, o, a, b| {
            let x = b as u32;
            if x.ordinary() {
                merge::<64>(a, u128::from(f64::from(f32::from_bits(x)).to_bits()))
            } else {
                float::run(c, |mxcsr| host::cvtss2sd(mxcsr, a, b))?
            }
        }),
        Cvtsd2ss => xmm_op!(i, op, u64, |c, o, a, b| {
            let x = b as u64;
            let r = (f64::from_bits(x) as f32).to_bits();
            if quick(c) && (x.normal() && r.safe() || x.zero()) {
                merge::<32>(a, u128::from(r))
            } else {
                float::run_shaped(c, Shape::all(Step::Narrow, 1, true), a, b, host::cvtsd2ss)?
            }
        }),
        Cvtsi2sd if wide_source => from_gpr::<u64, Double64>(i, op),
        Cvtsi2sd => from_gpr::<u32, Double32>(i, op),
        Cvtsi2ss if wide_source => from_gpr::<u64, Single64>(i, op),
        Cvtsi2ss => from_gpr::<u32, Single32>(i, op),
        Cvtss2si => to_integer!(u32, Nearest32, Nearest32Wide),
        Cvtsd2si => to_integer!(u64, Nearest64, Nearest64Wide),
        Cvttss2si => to_integer!(u32, Chop32, Chop32Wide),
        Cvttsd2si => to_integer!(u64, Chop64, Chop64Wide),
        Cvtpi2pd if is_memory(i, 1) => xmm_op!(i, op, u64, |c, o, a, b| doubles(b as u64)),
        Cvtpi2pd => handler!(op, |core, o| {
            usable(core)?;
            mmx_usable(core)?;
            let v = mm(core, o.src);
            enter_mmx(core);
            set_xmm(core, o.dst, doubles(v));
            Ok(())
        }),
        Cvtpi2ps if is_memory(i, 1) => xmm_op!(i, op, u64, |c, o, a, b| {
            merge::<64>(a, float::run(c, |mxcsr| host::cvtdq2ps(mxcsr, 0, b))?)
        }),
        Cvtpi2ps => handler!(op, |core, o| {
            usable(core)?;
            mmx_usable(core)?;
            let b = u128::from(mm(core, o.src));
            enter_mmx(core);
            let r = float::run(core, |mxcsr| host::cvtdq2ps(mxcsr, 0, b))?;
            let r = merge::<64>(xmm(core, o.dst), r);
            set_xmm(core, o.dst, r);
            Ok(())
        }),
        Cvtps2pi => to_mm!(u64, host::cvtps2dq, LOW),
        Cvttps2pi => to_mm!(u64, host::cvttps2dq, LOW),
        Cvtpd2pi => to_mm!(u128, host::cvtpd2dq, u128::MAX),
        Cvttpd2pi => to_mm!(u128, host::cvttpd2dq, u128::MAX),
        _ => None,
    }
}

/// Converts two signed dwords to doubles, which is always exact.
fn doubles(v: u64) -> u128 {
    let double = |n: u32| u128::from(f64::from((v >> n) as i32).to_bits());
    double(0) | double(32) << 64
}

/// Conversion of an integer to a floating-point low element.
pub(crate) trait FromInteger {
    /// Returns `a` with its low element replaced by the converted `v`.
    fn convert(core: &mut Core, a: u128, v: u64) -> Result<u128, Stop>;
}

/// CVTSI2SD from 32 bits, which is always exact.
pub(crate) struct Double32;
/// CVTSI2SD from 64 bits.
pub(crate) struct Double64;
/// CVTSI2SS from 32 bits.
pub(crate) struct Single32;
/// CVTSI2SS from 64 bits.
pub(crate) struct Single64;

impl FromInteger for Double32 {
    #[inline(always)]
    fn convert(_: &mut Core, a: u128, v: u64) -> Result<u128, Stop> {
        Ok(merge::<64>(a, u128::from(f64::from(v as i32).to_bits())))
    }
}
impl FromInteger for Double64 {
    #[inline(always)]
    fn convert(core: &mut Core, a: u128, v: u64) -> Result<u128, Stop> {
        // The conversion can raise only the precision exception. `quick` is true only if the flag of this exception is
        // already set. A value of at most 2^53 is converted exactly, and raises no exception.
        if quick(core) || (v as i64).unsigned_abs() <= 1 << 53 {
            return Ok(merge::<64>(a, u128::from((v as i64 as f64).to_bits())));
        }
        float::run(core, |mxcsr| host::cvtsi2sd64(mxcsr, v)).map(|r| merge::<64>(a, r))
    }
}
impl FromInteger for Single32 {
    #[inline(always)]
    fn convert(core: &mut Core, a: u128, v: u64) -> Result<u128, Stop> {
        if quick(core) {
            return Ok(merge::<32>(a, u128::from((v as i32 as f32).to_bits())));
        }
        float::run(core, |mxcsr| host::cvtsi2ss32(mxcsr, v)).map(|r| merge::<32>(a, r))
    }
}
impl FromInteger for Single64 {
    #[inline(always)]
    fn convert(core: &mut Core, a: u128, v: u64) -> Result<u128, Stop> {
        if quick(core) {
            return Ok(merge::<32>(a, u128::from((v as i64 as f32).to_bits())));
        }
        float::run(core, |mxcsr| host::cvtsi2ss64(mxcsr, v)).map(|r| merge::<32>(a, r))
    }
}

fn from_gpr<T: Prim, C: FromInteger>(i: &Instruction, op: &mut Op) -> Option<Kind> {
    fn reg<C: FromInteger>(core: &mut Core, op: &Op) -> Flow {
        usable(core)?;
        let v = core.regs[(op.src & 15) as usize];
        let r = C::convert(core, xmm(core, op.dst), v)?;
        set_xmm(core, op.dst, r);
        Ok(())
    }
    fn mem<T: Prim, C: FromInteger>(core: &mut Core, op: &Op) -> Flow {
        usable(core)?;
        let v = load::<T>(core, op)? as u64;
        let r = C::convert(core, xmm(core, op.dst), v)?;
        set_xmm(core, op.dst, r);
        Ok(())
    }
    op.run = if is_memory(i, 1) { mem::<T, C> } else { reg::<C> };
    Some(Kind::Straight)
}

/// Conversion of a floating-point low element to an integer.
trait ToInteger {
    /// Returns the new value of the general register.
    fn convert(core: &mut Core, b: u128) -> Result<u64, Stop>;
}

macro_rules! to_integer {
    ($($name:ident $host:path;)*) => {$(
        struct $name;
        impl ToInteger for $name {
            #[inline(always)]
            fn convert(core: &mut Core, b: u128) -> Result<u64, Stop> {
                float::run(core, |mxcsr| $host(mxcsr, b))
            }
        }
    )*};
}
to_integer! {
    Nearest32 host::cvtss2si32;
    Nearest32Wide host::cvtss2si64;
    Nearest64 host::cvtsd2si32;
    Nearest64Wide host::cvtsd2si64;
}

/// Truncating conversion. The rounding mode has no effect. If the operand is in range, only the precision exception is
/// possible.
macro_rules! truncate {
    ($($name:ident $t:ty, $f:ty, $int:ty, $uint:ty, $limit:literal, $host:path;)*) => {$(
        struct $name;
        impl ToInteger for $name {
            #[inline(always)]
            fn convert(core: &mut Core, b: u128) -> Result<u64, Stop> {
                let x = b as $t;
                let v = <$f>::from_bits(x);
                if quick(core) && x.ordinary() && v.abs() < $limit {
                    return Ok(v as $int as $uint as u64);
                }
                float::run(core, |mxcsr| $host(mxcsr, b))
            }
        }
    )*};
}
truncate! {
    Chop32 u32, f32, i32, u32, 2147483648.0, host::cvttss2si32;
    Chop32Wide u32, f32, i64, u64, 9223372036854775808.0, host::cvttss2si64;
    Chop64 u64, f64, i32, u32, 2147483648.0, host::cvttsd2si32;
    Chop64Wide u64, f64, i64, u64, 9223372036854775808.0, host::cvttsd2si64;
}

fn to_gpr<T: Prim, C: ToInteger>(i: &Instruction, op: &mut Op) -> Option<Kind> {
    fn reg<C: ToInteger>(core: &mut Core, op: &Op) -> Flow {
        usable(core)?;
        let v = C::convert(core, xmm(core, op.src))?;
        core.regs[(op.dst & 15) as usize] = v;
        Ok(())
    }
    fn mem<T: Prim, C: ToInteger>(core: &mut Core, op: &Op) -> Flow {
        usable(core)?;
        let b = load::<T>(core, op)?;
        let v = C::convert(core, b)?;
        core.regs[(op.dst & 15) as usize] = v;
        Ok(())
    }
    op.run = if is_memory(i, 1) { mem::<T, C> } else { reg::<C> };
    Some(Kind::Straight)
}

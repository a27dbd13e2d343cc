//! Transcendental instructions: FSIN, FCOS, FSINCOS, FPTAN, FPATAN, F2XM1, FYL2X, FYL2XP1. They are computed in
//! software, because hosts differ in the last place.
//!
//! - `wide`: numbers of 128 bits and their rounding
//! - `series`: the functions
//! - this file: special operands (the tables at each instruction in SDM vol. 2A) and the register stack
//!
//! Results have an error of barely more than half a unit in the last place of the extended format, and follow rounding
//! control. As on hardware, precision control has no effect. Trigonometric arguments are reduced by Intel's 66-bit pi.

mod series;
mod wide;

use super::format::{Class, classify, unpack};
use super::stack::{
    BEFORE, C1, C2, DE, EXCEPTIONS, IE, INDEFINITE, OE, OVERFLOW, PE, UE, UNDERFLOW, ZE, enter, full, pop,
    push, set_st, settle, st,
};
use crate::core::Core;
use crate::host_fp::x87::{self as host, Extended};
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};
use wide::{ONE, Wide, ZERO};

/// Least exponent of an operand that trigonometric instructions refuse.
const TRIGONOMETRIC_LIMIT: i32 = 63;
const ONE_ENCODED: Extended = (1 << 63, 0x3fff);

/// Chooses the handler of a transcendental instruction. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    op.run = match i.mnemonic() {
        Fsin => |core, op| one(core, op, sine),
        Fcos => |core, op| one(core, op, cosine),
        F2xm1 => |core, op| {
            let c2 = core.fpu.fsw & C2;
            one(core, op, power).inspect(|()| core.fpu.fsw |= c2)
        },
        Fsincos => |core, op| pushing(core, op, |cw, a| (sine(cw, a), cosine(cw, a))),
        Fptan => |core, op| pushing(core, op, tangent),
        Fpatan => |core, op| two(core, op, arctangent),
        Fyl2x => |core, op| two(core, op, logarithm),
        Fyl2xp1 => |core, op| two(core, op, logarithm_one_plus),
        _ => return None,
    };
    Some(Kind::Straight)
}

/// A result and its status word. If the operand of a trigonometric instruction is out of range, the status word has C2
/// set, and the result is the operand.
type Outcome = (Extended, u16);

/// Returns `status`. If it has an unmasked exception that is detected before the computation, the exceptions of the
/// computation are removed.
fn found(cw: u16, status: u16) -> u16 {
    if status & !cw & (DE | ZE) != 0 { status & !(OE | UE | PE | C1) } else { status }
}

fn one(core: &mut Core, op: &Op, f: fn(u16, Extended) -> Outcome) -> Flow {
    enter(core)?;
    let (r, status) = match st(core, 0) {
        Some(a) => f(core.fpu.fcw, a),
        None => (INDEFINITE, UNDERFLOW),
    };
    let status = found(core.fpu.fcw, status);
    let completes = settle(core, op, status, BEFORE);
    core.fpu.fsw = core.fpu.fsw & !C2 | status & C2;
    if completes {
        set_st(core, 0, r);
    }
    Ok(())
}

/// FSINCOS and FPTAN, which replace ST(0) and push a second result.
fn pushing(core: &mut Core, op: &Op, f: fn(u16, Extended) -> (Outcome, Outcome)) -> Flow {
    enter(core)?;
    let ((first, s), (second, t)) = match st(core, 0) {
        None => ((INDEFINITE, UNDERFLOW), (INDEFINITE, 0)),
        Some(_) if full(core) => ((INDEFINITE, OVERFLOW), (INDEFINITE, 0)),
        Some(a) => f(core.fpu.fcw, a),
    };
    let status = found(core.fpu.fcw, s | t);
    let completes = settle(core, op, status, BEFORE);
    core.fpu.fsw = core.fpu.fsw & !C2 | status & C2;
    if completes && status & C2 == 0 {
        set_st(core, 0, first);
        push(core, second);
    }
    Ok(())
}

/// FPATAN and the logarithms: sets ST(1) to `f` of ST(1) and ST(0), then pops.
fn two(core: &mut Core, op: &Op, f: fn(u16, Extended, Extended) -> Outcome) -> Flow {
    enter(core)?;
    let (r, status) = match (st(core, 1), st(core, 0)) {
        (Some(y), Some(x)) => f(core.fpu.fcw, y, x),
        _ => (INDEFINITE, UNDERFLOW),
    };
    let status = found(core.fpu.fcw, status);
    if settle(core, op, status, BEFORE) {
        set_st(core, 1, r);
        pop(core);
    }
    Ok(())
}

/// Returns a NaN operand as a quiet NaN, or the default NaN for an invalid encoding.
fn not_a_number(a: Extended) -> Outcome {
    let (r, status) = host::add(EXCEPTIONS | 0x300, a, a);
    (r, status & IE)
}

/// Like [`not_a_number`], for two operands. At least one of them must be a NaN or an invalid encoding.
fn neither_a_number(y: Extended, x: Extended) -> Outcome {
    let (r, status) = host::add(EXCEPTIONS | 0x300, y, x);
    (r, status & IE)
}

fn denormal(class: Class) -> u16 {
    if class == Class::Denormal { DE } else { 0 }
}

/// Returns sine, cosine and status of a number. If the operand has no sine, returns the instruction's result and status
/// word as the error.
fn angle(a: Extended) -> Result<(Wide, Wide, u16), Outcome> {
    let class = classify(a);
    match class {
        Class::Nan | Class::Unsupported => Err(not_a_number(a)),
        Class::Infinity => Err((INDEFINITE, IE)),
        Class::Zero => Ok((ZERO.signed(a.1 & 0x8000 != 0), ONE, 0)),
        Class::Denormal | Class::Normal => {
            let x = unpack(a);
            if x.exponent >= TRIGONOMETRIC_LIMIT {
                return Err((a, C2));
            }
            let (s, c) = series::sine_cosine(Wide::from_unpacked(x));
            Ok((s, c, denormal(class) | PE))
        }
    }
}

/// Rounds a result. The result is inexact if `status` has PE.
fn finish(cw: u16, v: Wide, status: u16) -> Outcome {
    let (r, more) = v.round(cw, status & PE != 0);
    (r, status | more)
}

fn sine(cw: u16, a: Extended) -> Outcome {
    angle(a).map_or_else(|refused| refused, |(s, _, status)| finish(cw, s, status))
}

fn cosine(cw: u16, a: Extended) -> Outcome {
    angle(a).map_or_else(|refused| refused, |(_, c, status)| finish(cw, c, status))
}

fn tangent(cw: u16, a: Extended) -> (Outcome, Outcome) {
    match angle(a) {
        Ok((s, _, 0)) => (finish(cw, s, 0), (ONE_ENCODED, 0)),
        Ok((s, c, status)) => (finish(cw, s.div(c), status), (ONE_ENCODED, 0)),
        Err(refused) => (refused, refused),
    }
}

/// F2XM1. The manual leaves the result undefined for operands outside -1 to 1. Here the result is then the operand,
/// except that the result for minus infinity is -1.
fn power(cw: u16, a: Extended) -> Outcome {
    let class = classify(a);
    match class {
        Class::Nan | Class::Unsupported => return not_a_number(a),
        Class::Zero => return (a, 0),
        Class::Infinity if a.1 & 0x8000 != 0 => return ((1 << 63, 0xbfff), 0),
        Class::Infinity => return (a, 0),
        Class::Denormal | Class::Normal => {}
    }
    let x = unpack(a);
    if x.exponent >= 0 {
        let one = x.exponent == 0 && x.significand == 1 << 63;
        return (if one && x.negative { (1 << 63, 0xbffe) } else { a }, PE);
    }
    finish(cw, series::power_of_two_minus_one(Wide::from_unpacked(x)), denormal(class) | PE)
}

/// FPATAN.
fn arctangent(cw: u16, y: Extended, x: Extended) -> Outcome {
    use Class::*;
    let (b, a) = (classify(y), classify(x));
    let (y_negative, x_negative) = (y.1 & 0x8000 != 0, x.1 & 0x8000 != 0);
    let pi_times = |eighths: u32| {
        let v = series::PI.mul(Wide::scaled(false, u128::from(eighths), -3)).signed(y_negative);
        finish(cw, v, PE | denormal(a) | denormal(b))
    };
    match (b, a) {
        (Nan | Unsupported, _) | (_, Nan | Unsupported) => neither_a_number(y, x),
        (Infinity, Infinity) => pi_times(if x_negative { 6 } else { 2 }),
        (Infinity, _) => pi_times(4),
        (_, Infinity) | (Zero, _) if x_negative => pi_times(8),
        (_, Infinity) | (Zero, _) => ((0, y.1 & 0x8000), denormal(a) | denormal(b)),
        (_, Zero) => pi_times(4),
        _ => {
            let (v, w) = (Wide::from_unpacked(unpack(y)), Wide::from_unpacked(unpack(x)));
            let r = series::arctangent(v, w);
            // A quotient y / x below the range of the format needs no special case: `Wide` has a larger range, and the
            // difference between quotient and arctangent is far beyond the last place of the format.
            finish(cw, r, PE | denormal(a) | denormal(b))
        }
    }
}

/// Returns `v` with the sign replaced.
fn signed(v: Extended, negative: bool) -> Extended {
    (v.0, v.1 & 0x7fff | if negative { 0x8000 } else { 0 })
}

const INFINITE: Extended = (1 << 63, 0x7fff);

/// FYL2X: y * log2(x).
fn logarithm(cw: u16, y: Extended, x: Extended) -> Outcome {
    use Class::*;
    let (b, a) = (classify(y), classify(x));
    let (y_negative, x_negative) = (y.1 & 0x8000 != 0, x.1 & 0x8000 != 0);
    let denormals = denormal(a) | denormal(b);
    match (b, a) {
        (Nan | Unsupported, _) | (_, Nan | Unsupported) => return neither_a_number(y, x),
        (Zero, Zero | Infinity) => return (INDEFINITE, IE),
        (Infinity, Zero) => return (signed(INFINITE, !y_negative), 0),
        (_, Zero) => return (signed(INFINITE, !y_negative), ZE),
        _ if x_negative => return (INDEFINITE, IE),
        (_, Infinity) => return (signed(INFINITE, y_negative), denormals),
        _ => {}
    }
    let log = series::log2(Wide::from_unpacked(unpack(x)));
    let negative = y_negative != log.negative;
    match b {
        Infinity if log.is_zero() => (INDEFINITE, IE),
        Infinity => (signed(INFINITE, negative), denormals),
        Zero => (signed((0, 0), negative), denormals),
        _ if log.is_zero() => (signed((0, 0), y_negative), denormals),
        _ => {
            // Hardware reports PE even for powers of two, although their logarithms are exact.
            let product = log.mul(Wide::from_unpacked(unpack(y)));
            finish(cw, product, denormals | PE)
        }
    }
}

/// FYL2XP1: y * log2(x + 1). The manual leaves the result undefined for |x| above 1 - sqrt(2) / 2. Here the function
/// extends to all x above -1. For finite x of -1 or less and finite nonzero y, the result is x, as on hardware.
fn logarithm_one_plus(cw: u16, y: Extended, x: Extended) -> Outcome {
    use Class::*;
    let (b, a) = (classify(y), classify(x));
    let (y_negative, x_negative) = (y.1 & 0x8000 != 0, x.1 & 0x8000 != 0);
    let negative = y_negative != x_negative;
    let denormals = denormal(a) | denormal(b);
    match (b, a) {
        (Nan | Unsupported, _) | (_, Nan | Unsupported) => return neither_a_number(y, x),
        (Infinity, Zero) | (Zero, Infinity) => return (INDEFINITE, IE),
        (_, Infinity) if x_negative => return (INDEFINITE, IE),
        (_, Zero) => return (signed((0, 0), negative), denormals),
        (_, Infinity) => return (signed(INFINITE, y_negative), denormals),
        _ => {}
    }
    let v = Wide::from_unpacked(unpack(x));
    match b {
        Infinity => (signed(INFINITE, negative), denormals),
        Zero => (signed((0, 0), negative), denormals),
        _ if x_negative && v.reaches(ONE) => (x, PE | denormals),
        _ => {
            let product = series::log2_one_plus(v).mul(Wide::from_unpacked(unpack(y)));
            finish(cw, product, denormals | PE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_fp::x87::functions;

    const CW: u16 = 0x37f;

    /// Returns numbers of both signs with random significands and exponents from `low` to `high`.
    fn numbers(low: i32, high: i32, count: u64) -> impl Iterator<Item = Extended> {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        (0..count).map(move |n| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(n | 1);
            let exponent = low + (seed >> 33) as i32 % (high - low + 1);
            let sign = if seed >> 20 & 1 != 0 { 0x8000 } else { 0 };
            (seed | 1 << 63, sign | (exponent + super::super::format::BIAS) as u16)
        })
    }
    /// Returns the distance between two numbers, in units of the last place.
    fn distance(a: Extended, b: Extended) -> i128 {
        let place = |v: Extended| {
            let magnitude = i128::from(v.1 & 0x7fff) << 63 | i128::from(v.0 & (u64::MAX >> 1));
            if v.1 & 0x8000 != 0 { -magnitude } else { magnitude }
        };
        (place(a) - place(b)).abs()
    }

    #[test]
    fn functions_are_within_a_unit_of_the_hosts() {
        for a in numbers(-40, 1, 4000) {
            assert!(distance(sine(CW, a).0, functions::sin(CW, a).0) <= 1, "sin {a:x?}");
            assert!(distance(cosine(CW, a).0, functions::cos(CW, a).0) <= 1, "cos {a:x?}");
        }
        for a in numbers(-60, -1, 4000) {
            assert!(distance(power(CW, a).0, functions::power(CW, a).0) <= 1, "2^x - 1 {a:x?}");
        }
        for (y, x) in numbers(-30, 30, 4000).zip(numbers(-20, 40, 4000)) {
            let (r, h) = (arctangent(CW, y, x).0, functions::arctangent(CW, y, x).0);
            assert!(distance(r, h) <= 1, "atan {y:x?} {x:x?}");
            let x = (x.0, x.1 & 0x7fff);
            let (r, h) = (logarithm(CW, y, x).0, functions::logarithm(CW, y, x).0);
            assert!(distance(r, h) <= 1, "log {y:x?} {x:x?}");
        }
        for (y, x) in numbers(-30, 30, 4000).zip(numbers(-50, -3, 4000)) {
            let (r, h) = (logarithm_one_plus(CW, y, x).0, functions::logarithm_one_plus(CW, y, x).0);
            assert!(distance(r, h) <= 1, "log1p {y:x?} {x:x?}");
        }
    }

    #[test]
    fn values_that_are_known() {
        let one = ONE_ENCODED;
        assert_eq!(sine(CW, one).0, (0xd76a_a478_4867_7021, 0x3ffe));
        assert_eq!(arctangent(CW, one, one).0, (0xc90f_daa2_2168_c235, 0x3ffe));
        assert_eq!(logarithm(CW, one, (1 << 63, 0x4004)).0, (0xa000_0000_0000_0000, 0x4001));
        assert_eq!(power(CW, (1 << 63, 0x3ffe)).0, (0xd413_cccf_e779_9211, 0x3ffd));
    }

    #[test]
    fn special_operands_follow_the_manuals_tables() {
        let (infinity, minus_zero) = (INFINITE, (0, 0x8000));
        assert_eq!(sine(CW, infinity), (INDEFINITE, IE));
        assert_eq!(sine(CW, minus_zero), (minus_zero, 0));
        assert_eq!(cosine(CW, minus_zero), (ONE_ENCODED, 0));
        assert_eq!(sine(CW, (1 << 63, 0x403e)), ((1 << 63, 0x403e), C2));
        assert_eq!(arctangent(CW, minus_zero, ONE_ENCODED), (minus_zero, 0));
        assert_eq!(arctangent(CW, (0, 0), minus_zero).0, (0xc90f_daa2_2168_c235, 0x4000));
        assert_eq!(logarithm(CW, ONE_ENCODED, (0, 0)), (signed(INFINITE, true), ZE));
        assert_eq!(logarithm(CW, (0, 0), infinity), (INDEFINITE, IE));
        assert_eq!(logarithm(CW, ONE_ENCODED, (1 << 63, 0xbfff)), (INDEFINITE, IE));
        assert_eq!(logarithm_one_plus(CW, infinity, (0, 0)), (INDEFINITE, IE));
        assert_eq!(power(CW, (1 << 63, 0xbfff)).0, (1 << 63, 0xbffe));
    }
}

//! FPREM and FPREM1 (SDM vol. 2A), computed in software. The manual leaves open how far one step of a long reduction
//! gets, and that must not depend on the host.

use super::format::{Class, Unpacked, classify, pack, unpack};
use super::stack::{
    BEFORE, C0, C1, C2, C3, CONDITION, DE, EXCEPTIONS, IE, INDEFINITE, UNDERFLOW, enter, set_st, settle, st,
};
use crate::core::Core;
use crate::host_fp::x87::{self as host, Extended};
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

/// Chooses the function that executes FPREM or FPREM1. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    op.run = match i.mnemonic() {
        Mnemonic::Fprem => |core, op| run(core, op, false),
        Mnemonic::Fprem1 => |core, op| run(core, op, true),
        _ => return None,
    };
    Some(Kind::Straight)
}

fn run(core: &mut Core, op: &Op, nearest: bool) -> Flow {
    enter(core)?;
    let (r, status) = match (st(core, 0), st(core, 1)) {
        (Some(a), Some(b)) => remainder(core.fpu.fcw, a, b, nearest),
        _ => (INDEFINITE, UNDERFLOW),
    };
    // If there is no quotient, C0 and C3 keep their values.
    let replaced = if status & QUOTIENT != 0 { CONDITION } else { C2 };
    let completes = settle(core, op, status, BEFORE);
    core.fpu.fsw = core.fpu.fsw & !replaced | status & replaced;
    if completes {
        set_st(core, 0, r);
    }
    Ok(())
}

/// Bit that [`remainder`] sets in the returned status word if there is a quotient. In the status word of hardware, this
/// bit belongs to TOP.
const QUOTIENT: u16 = 1 << 11;

/// Returns the remainder of `a` by `b`, or a step towards it, and a status word. The status word contains the raised
/// exceptions. After a step, C2 is set in it; otherwise C0, C3 and C1 are the last three bits of the quotient.
fn remainder(cw: u16, a: Extended, b: Extended, nearest: bool) -> (Extended, u16) {
    let (class_a, class_b) = (classify(a), classify(b));
    if matches!(class_a, Class::Nan | Class::Unsupported)
        || matches!(class_b, Class::Nan | Class::Unsupported)
    {
        let (r, status) = host::add(cw | EXCEPTIONS, a, b);
        return (r, status & EXCEPTIONS);
    }
    if class_a == Class::Infinity || class_b == Class::Zero {
        return (INDEFINITE, IE);
    }
    let denormal = if class_a == Class::Denormal || class_b == Class::Denormal { DE } else { 0 };
    if denormal & !cw != 0 {
        return (a, denormal);
    }
    if class_a == Class::Zero || class_b == Class::Infinity {
        // The value stays as it is, but a pseudo-denormal gets its normal encoding. No underflow exception is raised.
        let r = if class_a == Class::Denormal { pack(EXCEPTIONS, unpack(a)).0 } else { a };
        return (r, denormal | QUOTIENT);
    }
    let (x, y) = (unpack(a), unpack(b));
    let distance = x.exponent - y.exponent;
    let (mx, my) = (u128::from(x.significand), u128::from(y.significand));
    if distance < -1 || distance < 0 && !nearest {
        let (r, status) = pack(cw, x);
        return (r, denormal | status | QUOTIENT);
    }
    if distance >= 64 {
        // As on Intel hardware, one step yields 32 to 63 bits of the quotient.
        let n = distance & 31 | 32;
        let rest = (mx << n) % my;
        let (r, status) = finish(cw, x.negative, rest, x.exponent - n);
        return (r, denormal | status | QUOTIENT | C2);
    }
    // The exponent of `x` may be one less than that of `y` (a distance of -1). Both significands are therefore shifted
    // left by one more bit. The last bit of `scaled`, `unit` and `rest` then weighs half of the last place of `y`.
    let (scaled, unit) = (mx << (distance + 1), my << 1);
    let (mut quotient, mut rest, mut negative) = (scaled / unit, scaled % unit, x.negative);
    if nearest && (2 * rest > unit || 2 * rest == unit && quotient & 1 != 0) {
        (rest, negative) = (unit - rest, !negative);
        quotient += 1;
    }
    let zero_sign = if rest == 0 { x.negative } else { negative };
    let (r, status) = finish(cw, zero_sign, rest, y.exponent - 1);
    let bit = |n: u32, c: u16| if quotient >> n & 1 != 0 { c } else { 0 };
    (r, denormal | status | QUOTIENT | bit(2, C0) | bit(1, C3) | bit(0, C1))
}

/// Packs a remainder of at most 65 bits. The weight of its bit 63 is 2^`exponent`. The result is always exact.
fn finish(cw: u16, negative: bool, rest: u128, exponent: i32) -> (Extended, u16) {
    if rest == 0 {
        return ((0, if negative { 0x8000 } else { 0 }), 0);
    }
    let top = 127 - rest.leading_zeros() as i32;
    let significand = if top >= 63 { rest >> (top - 63) } else { rest << (63 - top) } as u64;
    pack(cw, Unpacked { negative, exponent: exponent + top - 63, significand })
}

#[cfg(test)]
mod tests {
    use super::super::integer::extended;
    use super::*;

    const CW: u16 = 0x37f;

    #[test]
    fn quotient_bits_come_with_a_complete_remainder() {
        assert_eq!(remainder(CW, extended(17), extended(5), false), (extended(2), QUOTIENT | C3 | C1));
        assert_eq!(remainder(CW, extended(-17), extended(5), false), (extended(-2), QUOTIENT | C3 | C1));
        // Rounding to nearest, with ties to even.
        assert_eq!(remainder(CW, extended(18), extended(5), true), (extended(-2), QUOTIENT | C0));
        assert_eq!(remainder(CW, extended(3), extended(2), true), (extended(-1), QUOTIENT | C3));
        assert_eq!(remainder(CW, extended(1), extended(2), true), (extended(1), QUOTIENT));
    }

    #[test]
    fn a_long_reduction_takes_steps_and_ends_where_integers_do() {
        let (mut r, mut steps) = ((0xdead_beef_dead_beef, 0x3fff + 500), 0);
        let by = (0x8765_4321_8765_4321, 0x3fff + 63);
        loop {
            let (next, status) = remainder(CW, r, by, false);
            r = next;
            steps += 1;
            if status & C2 == 0 {
                break;
            }
        }
        // The expected result comes from integer arithmetic: the dividend is 0xdead... * 2^437.
        let expected = (0..437)
            .fold(0xdead_beef_dead_beefu128 % 0x8765_4321_8765_4321, |r, _| r * 2 % 0x8765_4321_8765_4321);
        assert_eq!(unpack(r).significand >> (63 - unpack(r).exponent), expected as u64);
        assert!(steps > 5 && steps < 14);
    }

    #[test]
    fn operands_without_a_remainder_are_invalid() {
        assert_eq!(remainder(CW, extended(1), (0, 0), false), (INDEFINITE, IE));
        assert_eq!(remainder(CW, (1 << 63, 0x7fff), extended(1), false), (INDEFINITE, IE));
        assert_eq!(remainder(CW, extended(7), (1 << 63, 0x7fff), false), (extended(7), QUOTIENT));
    }
}

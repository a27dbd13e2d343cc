//! F16C: conversions between half and single precision, in software (SDM vol. 2C, VCVTPH2PS and VCVTPS2PH). Their accesses
//! to memory are not checked for alignment.

use super::operand::{handler, immediate, in_memory, rm, set, set_ymm, unchecked, wide, ymm};
use super::soft::{Class, HALF, Rounding, SINGLE};
use crate::core::Core;
use crate::exec::sse::float::{self, DE, IE};
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

/// Bit of the immediate: MXCSR has the rounding mode.
const BY_MXCSR: u64 = 4;

/// Chooses the handler of a conversion. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    match i.mnemonic() {
        Mnemonic::Vcvtph2ps => handler!(op, |core, o| widen(core, o)),
        Mnemonic::Vcvtps2ph => handler!(op, |core, o| narrow(core, o)),
        _ => None,
    }
}

/// Returns the number of elements.
fn count(op: &Op) -> usize {
    if wide(op) { 8 } else { 4 }
}

/// VCVTPH2PS. Denormal operands are converted exactly, whatever MXCSR says.
fn widen(core: &mut Core, op: &Op) -> Flow {
    let b = unchecked(core, |core| rm(core, op))?[0];
    let mut raised = 0;
    let mut r = [0u128; 2];
    for n in 0..count(op) {
        let (v, flags) = single((b >> (16 * n)) as u16);
        raised |= flags;
        r[n / 4] |= u128::from(v) << (32 * (n % 4));
    }
    float::settle(core, raised)?;
    set(core, op, r);
    Ok(())
}

/// Converts a number to single precision. Returns it and the exception flags.
fn single(x: u16) -> (u32, u32) {
    let number = HALF.parts(x.into(), false);
    let payload = u64::from(x & 0x3ff) << (SINGLE.fraction - HALF.fraction);
    let (v, flags) = match number.class {
        Class::Zero => (SINGLE.zero(number.negative), 0),
        Class::Infinite => (SINGLE.infinity(number.negative), 0),
        Class::QuietNan => (SINGLE.infinity(number.negative) | payload, 0),
        Class::SignallingNan => (SINGLE.infinity(number.negative) | payload | SINGLE.quiet(), IE),
        Class::Finite => {
            let exact = Rounding::of(0x1f80);
            SINGLE.round(number.negative, number.significand.into(), number.exponent, exact)
        }
    };
    (v as u32, flags)
}

/// VCVTPS2PH. The destination is the operand `rm`. Flush-to-zero has no effect.
fn narrow(core: &mut Core, op: &Op) -> Flow {
    let from = ymm(core, op.src);
    let before = core.fpu.mxcsr;
    let mut by = Rounding { flush: false, ..Rounding::of(before) };
    if immediate(op) & BY_MXCSR == 0 {
        by.mode = immediate(op) as u32 & 3;
    }
    let mut raised = 0;
    let mut r = 0;
    for n in 0..count(op) {
        let x = (from[n / 4] >> (32 * (n % 4))) as u32;
        let (v, flags) = half(x, before & float::DAZ != 0, by);
        raised |= flags;
        r |= u128::from(v) << (16 * n);
    }
    float::settle(core, raised)?;
    if !in_memory(op) {
        set_ymm(core, op.dst, [r, 0]);
        return Ok(());
    }
    let va = op.ea(core);
    // As on hardware, MXCSR keeps the flags if the store faults.
    unchecked(core, |core| if wide(op) { core.mem.store(va, r) } else { core.mem.store(va, r as u64) })
}

/// Converts a number to half precision. Returns it and the exception flags.
fn half(x: u32, zero_denormals: bool, by: Rounding) -> (u16, u32) {
    let number = SINGLE.parts(x.into(), zero_denormals);
    let payload = u64::from(x & 0x7f_ffff) >> (SINGLE.fraction - HALF.fraction);
    let (v, flags) = match number.class {
        Class::Zero => (HALF.zero(number.negative), 0),
        Class::Infinite => (HALF.infinity(number.negative), 0),
        Class::QuietNan => (HALF.infinity(number.negative) | payload, 0),
        Class::SignallingNan => (HALF.infinity(number.negative) | payload | HALF.quiet(), IE),
        Class::Finite => HALF.round(number.negative, number.significand.into(), number.exponent, by),
    };
    (v as u16, flags | if number.denormal { DE } else { 0 })
}

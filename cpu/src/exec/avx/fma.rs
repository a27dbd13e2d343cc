//! Fused multiply-add (SDM vol. 1, 14.5; vol. 2C, VFMADD132PD and following), computed in software.

use super::operand::{Ymm, handler, other, rm, set, set_ymm, wide, ymm};
use super::soft::{self, Class, DOUBLE, Format, Rounding, SINGLE};
use crate::core::Core;
use crate::exec::sse::float::{self, DE, IE};
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

/// Mask of the bits of `Op::imm` that hold the order of the operands.
const ORDER: u64 = 3;
/// Bit of `Op::imm`: the product is negated.
const NEGATED: u64 = 4;
/// Bit of `Op::imm`: in elements with an even number, the addend is negated.
const MINUS_EVEN: u64 = 8;
/// Bit of `Op::imm`: in elements with an odd number, the addend is negated.
const MINUS_ODD: u64 = 16;
/// Bits of `Op::imm`: the addend is negated in all elements.
const MINUS: u64 = MINUS_EVEN | MINUS_ODD;
/// Bit of `Op::imm`: the operation has one element.
const SCALAR: u64 = 32;

macro_rules! operations {
    ($($m132:ident $m213:ident $m231:ident $format:ident $bits:expr;)*) => {
        /// Mnemonics of an operation by the order of its operands, its format, and its bits in `Op::imm`.
        const OPERATIONS: &[([Mnemonic; 3], bool, u64)] = &[
            $(([Mnemonic::$m132, Mnemonic::$m213, Mnemonic::$m231], $format, $bits)),*
        ];
    };
}

/// Formats in the table.
const PS: bool = false;
const PD: bool = true;

operations! {
    Vfmadd132ps Vfmadd213ps Vfmadd231ps PS 0;
    Vfmadd132pd Vfmadd213pd Vfmadd231pd PD 0;
    Vfmadd132ss Vfmadd213ss Vfmadd231ss PS SCALAR;
    Vfmadd132sd Vfmadd213sd Vfmadd231sd PD SCALAR;
    Vfmsub132ps Vfmsub213ps Vfmsub231ps PS MINUS;
    Vfmsub132pd Vfmsub213pd Vfmsub231pd PD MINUS;
    Vfmsub132ss Vfmsub213ss Vfmsub231ss PS MINUS | SCALAR;
    Vfmsub132sd Vfmsub213sd Vfmsub231sd PD MINUS | SCALAR;
    Vfnmadd132ps Vfnmadd213ps Vfnmadd231ps PS NEGATED;
    Vfnmadd132pd Vfnmadd213pd Vfnmadd231pd PD NEGATED;
    Vfnmadd132ss Vfnmadd213ss Vfnmadd231ss PS NEGATED | SCALAR;
    Vfnmadd132sd Vfnmadd213sd Vfnmadd231sd PD NEGATED | SCALAR;
    Vfnmsub132ps Vfnmsub213ps Vfnmsub231ps PS NEGATED | MINUS;
    Vfnmsub132pd Vfnmsub213pd Vfnmsub231pd PD NEGATED | MINUS;
    Vfnmsub132ss Vfnmsub213ss Vfnmsub231ss PS NEGATED | MINUS | SCALAR;
    Vfnmsub132sd Vfnmsub213sd Vfnmsub231sd PD NEGATED | MINUS | SCALAR;
    Vfmaddsub132ps Vfmaddsub213ps Vfmaddsub231ps PS MINUS_EVEN;
    Vfmaddsub132pd Vfmaddsub213pd Vfmaddsub231pd PD MINUS_EVEN;
    Vfmsubadd132ps Vfmsubadd213ps Vfmsubadd231ps PS MINUS_ODD;
    Vfmsubadd132pd Vfmsubadd213pd Vfmsubadd231pd PD MINUS_ODD;
}

/// Chooses the handler of a fused multiply-add. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let (order, double, bits) = OPERATIONS.iter().find_map(|(mnemonics, double, bits)| {
        let order = mnemonics.iter().position(|&m| m == i.mnemonic())?;
        Some((order, *double, *bits))
    })?;
    op.imm = bits | order as u64;
    if double {
        handler!(op, |core, o| execute(core, o, DOUBLE, 64))
    } else {
        handler!(op, |core, o| execute(core, o, SINGLE, 32))
    }
}

/// Executes an operation on elements of `bits` bits.
fn execute(core: &mut Core, op: &Op, format: Format, bits: u32) -> Flow {
    let third = rm(core, op)?;
    let (first, second) = (ymm(core, op.dst), other(core, op));
    // The factors and the addend. "132" multiplies the first by the third operand, and adds the second, and so on.
    let [x, y, z] = match op.imm & ORDER {
        0 => [first, third, second],
        1 => [second, first, third],
        _ => [second, third, first],
    };
    let scalar = op.imm & SCALAR != 0;
    let count = match (scalar, wide(op)) {
        (true, _) => 1,
        (false, true) => 256 / bits,
        (false, false) => 128 / bits,
    };
    let ones = u128::MAX >> (128 - bits);
    let mut r: Ymm = if scalar { [first[0] & !ones, 0] } else { [0; 2] };
    let mut raised = 0;
    for n in 0..count {
        let (half, at) = ((n * bits / 128) as usize, n * bits % 128);
        let element = |v: Ymm| (v[half] >> at & ones) as u64;
        let minus = op.imm & if n & 1 == 0 { MINUS_EVEN } else { MINUS_ODD } != 0;
        let operands = [element(x), element(y), element(z)];
        let (v, flags) = fused(format, operands, op.imm & NEGATED != 0, minus, core.fpu.mxcsr);
        raised |= flags;
        r[half] |= u128::from(v) << at;
    }
    float::settle(core, raised)?;
    if scalar {
        set_ymm(core, op.dst, r);
    } else {
        set(core, op, r);
    }
    Ok(())
}

/// Returns `x * y + z` and the exception flags. `negated` negates the product, and `minus` the addend. The result of
/// an operation on NaNs is the first NaN in the order x, y, z (SDM vol. 1, table 14-17).
fn fused(format: Format, operands: [u64; 3], negated: bool, minus: bool, mxcsr: u32) -> (u64, u32) {
    let numbers = operands.map(|v| format.parts(v, mxcsr & float::DAZ != 0));
    let [mut x, y, mut z] = numbers;
    let infinite = |class| class == Class::Infinite;
    let zero_product = x.class == Class::Zero || y.class == Class::Zero;
    let infinite_product = infinite(x.class) || infinite(y.class);
    if let Some(n) = numbers.iter().position(|number| number.is_nan()) {
        let signalling = numbers.iter().any(|number| number.class == Class::SignallingNan);
        return (operands[n] | format.quiet(), if signalling { IE } else { 0 });
    }
    x.negative ^= negated;
    z.negative ^= minus;
    let negative = x.negative != y.negative;
    if infinite_product && zero_product || infinite_product && infinite(z.class) && negative != z.negative {
        return (format.indefinite(), IE);
    }
    let denormal = if numbers.iter().any(|number| number.denormal) { DE } else { 0 };
    if infinite_product {
        return (format.infinity(negative), denormal);
    }
    if infinite(z.class) {
        return (format.infinity(z.negative), denormal);
    }
    let (r, flags) = soft::multiply_add(format, x, y, z, Rounding::of(mxcsr));
    (r, flags | denormal)
}

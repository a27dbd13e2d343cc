//! Horizontal and alternating arithmetic (SSE3) and dot products (SSE4.1), composed of SSE and SSE2 arithmetic.
//!
//! Elements that a step does not use are zero, because operations on zeros raise no exception.

use super::float;
use super::operand::{set_xmm, usable, xmm, xmm_op};
use super::precision::{Shape, Step};
use super::shuffle::{dwords, shufpd, shufps};
use crate::core::Core;
use crate::host_fp::sse as host;
use crate::op::{Kind, Op};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, Mnemonic};

const EVEN_SINGLES: u128 = 0x0000_0000_ffff_ffff_0000_0000_ffff_ffff;
const LOW: u128 = u64::MAX as u128;

const SINGLE_PRODUCTS: Shape = Shape::all(Step::Mul, 4, false);
const SINGLE_SUMS: Shape = Shape::all(Step::Add, 4, false);
const DOUBLE_PRODUCTS: Shape = Shape::all(Step::Mul, 2, true);
const DOUBLE_SUMS: Shape = Shape::all(Step::Add, 2, true);

/// A host operation on two vectors. It takes MXCSR and the operands, and returns the result and the new MXCSR.
type Packed = fn(u32, u128, u128) -> (u128, u32);

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    match i.mnemonic() {
        Addsubps => xmm_op!(i, op, u128, |c, o, a, b| {
            alternate(c, a, b, EVEN_SINGLES, 4, host::subps, host::addps)?
        }),
        Addsubpd => xmm_op!(i, op, u128, |c, o, a, b| alternate(c, a, b, LOW, 2, host::subpd, host::addpd)?),
        Haddps => xmm_op!(i, op, u128, |c, o, a, b| singles(c, a, b, Step::Add, host::addps)?),
        Hsubps => xmm_op!(i, op, u128, |c, o, a, b| singles(c, a, b, Step::Sub, host::subps)?),
        Haddpd => xmm_op!(i, op, u128, |c, o, a, b| doubles(c, a, b, Step::Add, host::addpd)?),
        Hsubpd => xmm_op!(i, op, u128, |c, o, a, b| doubles(c, a, b, Step::Sub, host::subpd)?),
        Dpps => xmm_op!(i, op, u128, |c, o, a, b| dot_singles(c, a, b, o.imm)?),
        Dppd => xmm_op!(i, op, u128, |c, o, a, b| dot_doubles(c, a, b, o.imm)?),
        _ => None,
    }
}

/// Applies `f` to the elements in the mask `first`, which are the even ones, and `g` to all others.
fn alternate(
    core: &mut Core,
    a: u128,
    b: u128,
    first: u128,
    count: u32,
    f: Packed,
    g: Packed,
) -> Result<u128, Stop> {
    let shape = Shape { steps: [Step::Sub, Step::Add], count, double: count == 2 };
    float::run_shaped(core, shape, a, b, |mxcsr, a, b| {
        let (x, x_status) = f(mxcsr, a & first, b & first);
        let (y, y_status) = g(mxcsr, a & !first, b & !first);
        (x & first | y & !first, x_status | y_status)
    })
}

fn singles(core: &mut Core, a: u128, b: u128, step: Step, f: Packed) -> Result<u128, Stop> {
    let (even, odd) = (shufps(a, b, 0b10_00_10_00), shufps(a, b, 0b11_01_11_01));
    float::run_shaped(core, Shape::all(step, 4, false), even, odd, f)
}

fn doubles(core: &mut Core, a: u128, b: u128, step: Step, f: Packed) -> Result<u128, Stop> {
    let (even, odd) = (shufpd(a, b, 0b00), shufpd(a, b, 0b11));
    float::run_shaped(core, Shape::all(step, 2, true), even, odd, f)
}

/// Returns a vector of `n` elements. An element is all ones if its bit in `chosen` is set, otherwise zero.
fn mask(chosen: u64, n: u32) -> u128 {
    let width = 128 / n;
    let one = u128::MAX >> (128 - width);
    (0..n).filter(|k| chosen >> k & 1 != 0).fold(0, |m, k| m | one << (k * width))
}

/// DPPS: multiplies the elements that bits 4-7 of `imm` choose, adds the products in pairs, and adds the two sums. The
/// elements that bits 0-3 of `imm` choose get the result. Each step raises its own exceptions (SDM vol. 2A, DPPS).
///
/// If several products are NaNs, the order of operands decides which NaN results. The first addition of an element adds
/// the product of the pair's other element (first operand) and the element's own product (second operand). The first
/// operand of its second addition is the sum of its own pair.
fn dot_singles(core: &mut Core, a: u128, b: u128, imm: u64) -> Result<u128, Stop> {
    let used = mask(imm >> 4, 4);
    let product = float::run_shaped(core, SINGLE_PRODUCTS, a & used, b & used, host::mulps)? & used;
    let neighbours = dwords(product, 0b10_11_00_01);
    let pairs = float::run_shaped(core, SINGLE_SUMS, neighbours, product, host::addps)?;
    let others = dwords(pairs, 0b01_00_11_10);
    let sum = float::run_shaped(core, SINGLE_SUMS, pairs, others, host::addps)?;
    Ok(sum & mask(imm, 4))
}

/// DPPD: like [`dot_singles`], with bits 4-5 and 0-1. There is only one addition, and its first operand is the
/// element's own product.
fn dot_doubles(core: &mut Core, a: u128, b: u128, imm: u64) -> Result<u128, Stop> {
    let used = mask(imm >> 4, 2);
    let product = float::run_shaped(core, DOUBLE_PRODUCTS, a & used, b & used, host::mulpd)? & used;
    let sum = float::run_shaped(core, DOUBLE_SUMS, product, product.rotate_left(64), host::addpd)?;
    Ok(sum & mask(imm, 2))
}

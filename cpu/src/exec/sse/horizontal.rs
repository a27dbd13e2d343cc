//! SSE3's horizontal and alternating arithmetic and SSE4.1's dot products, composed of SSE and SSE2 arithmetic.
//!
//! Elements that a step does not use are zero in it: zeros raise nothing.

use super::float;
use super::operand::{set_xmm, usable, xmm, xmm_op};
use super::shuffle::{dwords, shufpd, shufps};
use crate::core::Core;
use crate::host_fp::sse as host;
use crate::op::{Kind, Op};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, Mnemonic};

const EVEN_SINGLES: u128 = 0x0000_0000_ffff_ffff_0000_0000_ffff_ffff;
const LOW: u128 = u64::MAX as u128;

/// An operation of the host's on two vectors.
type Packed = fn(u32, u128, u128) -> (u128, u32);

/// Lower an instruction of this file.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    match i.mnemonic() {
        Addsubps => xmm_op!(i, op, u128, |c, o, a, b| {
            alternate(c, a, b, EVEN_SINGLES, host::subps, host::addps)?
        }),
        Addsubpd => xmm_op!(i, op, u128, |c, o, a, b| alternate(c, a, b, LOW, host::subpd, host::addpd)?),
        Haddps => xmm_op!(i, op, u128, |c, o, a, b| singles(c, a, b, host::addps)?),
        Hsubps => xmm_op!(i, op, u128, |c, o, a, b| singles(c, a, b, host::subps)?),
        Haddpd => xmm_op!(i, op, u128, |c, o, a, b| doubles(c, a, b, host::addpd)?),
        Hsubpd => xmm_op!(i, op, u128, |c, o, a, b| doubles(c, a, b, host::subpd)?),
        Dpps => xmm_op!(i, op, u128, |c, o, a, b| dot_singles(c, a, b, o.imm)?),
        Dppd => xmm_op!(i, op, u128, |c, o, a, b| dot_doubles(c, a, b, o.imm)?),
        _ => None,
    }
}

/// One operation on the elements of `first`, another on the rest.
fn alternate(core: &mut Core, a: u128, b: u128, first: u128, f: Packed, g: Packed) -> Result<u128, Stop> {
    float::run(core, |mxcsr| {
        let (x, x_status) = f(mxcsr, a & first, b & first);
        let (y, y_status) = g(mxcsr, a & !first, b & !first);
        (x & first | y & !first, x_status | y_status)
    })
}

fn singles(core: &mut Core, a: u128, b: u128, f: Packed) -> Result<u128, Stop> {
    let (even, odd) = (shufps(a, b, 0b10_00_10_00), shufps(a, b, 0b11_01_11_01));
    float::run(core, |mxcsr| f(mxcsr, even, odd))
}

fn doubles(core: &mut Core, a: u128, b: u128, f: Packed) -> Result<u128, Stop> {
    let (even, odd) = (shufpd(a, b, 0b00), shufpd(a, b, 0b11));
    float::run(core, |mxcsr| f(mxcsr, even, odd))
}

/// All bits of those of `n` elements whose bit of `chosen` is set.
fn mask(chosen: u64, n: u32) -> u128 {
    let width = 128 / n;
    let one = u128::MAX >> (128 - width);
    (0..n).filter(|k| chosen >> k & 1 != 0).fold(0, |m, k| m | one << (k * width))
}

/// DPPS: products of the elements chosen by bits 4-7, summed in pairs and the pairs summed, into those chosen by bits
/// 0-3. Exceptions are those of each step in turn (SDM vol. 2A, DPPS). Each result element starts its sum from its own
/// place, which shows in the NaN that it gives when there are several.
fn dot_singles(core: &mut Core, a: u128, b: u128, imm: u64) -> Result<u128, Stop> {
    let used = mask(imm >> 4, 4);
    let product = float::run(core, |mxcsr| host::mulps(mxcsr, a & used, b & used))? & used;
    let neighbours = dwords(product, 0b10_11_00_01);
    let pairs = float::run(core, |mxcsr| host::addps(mxcsr, neighbours, product))?;
    let others = dwords(pairs, 0b01_00_11_10);
    let sum = float::run(core, |mxcsr| host::addps(mxcsr, pairs, others))?;
    Ok(sum & mask(imm, 4))
}

/// DPPD: as `dot_singles`, by bits 4-5 and 0-1.
fn dot_doubles(core: &mut Core, a: u128, b: u128, imm: u64) -> Result<u128, Stop> {
    let used = mask(imm >> 4, 2);
    let product = float::run(core, |mxcsr| host::mulpd(mxcsr, a & used, b & used))? & used;
    let sum = float::run(core, |mxcsr| host::addpd(mxcsr, product, product.rotate_left(64)))?;
    Ok(sum & mask(imm, 2))
}

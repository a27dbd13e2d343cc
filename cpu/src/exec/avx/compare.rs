//! Compares with the 32 predicates of AVX (SDM vol. 2A, CMPPD, table 3-1), VPTEST, VTESTPS and VTESTPD.

use super::legacy::compute;
use super::operand::{Ymm, handler, immediate, other, rm, set, set_ymm, wide, ymm};
use crate::core::Core;
use crate::exec::sse::float;
use crate::exec::sse::operand::merge;
use crate::flags::{Flags, bits};
use crate::host_fp::sse as host;
use crate::op::{Kind, Op};
use crate::stop::{Flow, Stop};
use iced_x86::{Instruction, Mnemonic};

/// Relations of two numbers. Exactly one holds.
const LESS: u8 = 1;
const EQUAL: u8 = 2;
const GREATER: u8 = 4;
const UNORDERED: u8 = 8;

/// Relations for which each of the predicates 0-15 holds. Predicate n + 16 holds for the same relations as n.
const HOLDS: [u8; 16] = [
    EQUAL,
    LESS,
    LESS | EQUAL,
    UNORDERED,
    LESS | GREATER | UNORDERED,
    EQUAL | GREATER | UNORDERED,
    GREATER | UNORDERED,
    LESS | EQUAL | GREATER,
    EQUAL | UNORDERED,
    LESS | UNORDERED,
    LESS | EQUAL | UNORDERED,
    0,
    LESS | GREATER,
    EQUAL | GREATER,
    GREATER,
    LESS | EQUAL | GREATER | UNORDERED,
];
/// Mask of the predicates 0-15 that raise the invalid exception also for quiet NaNs. Predicates 16-31 do the opposite.
const SIGNALLING: u16 = 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 9 | 1 << 10 | 1 << 13 | 1 << 14;

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    match i.mnemonic() {
        Vcmpps => handler!(op, |core, o| packed::<32>(core, o, [host::cmpunordps, host::cmpltps])),
        Vcmppd => handler!(op, |core, o| packed::<64>(core, o, [host::cmpunordpd, host::cmpltpd])),
        Vcmpss => handler!(op, |core, o| scalar::<32>(core, o, [host::cmpunordss, host::cmpltss])),
        Vcmpsd => handler!(op, |core, o| scalar::<64>(core, o, [host::cmpunordsd, host::cmpltsd])),
        Vptest => handler!(op, |core, o| test(core, o, u128::MAX)),
        Vtestps => handler!(op, |core, o| test(core, o, 0x8000_0000_8000_0000_8000_0000_8000_0000)),
        Vtestpd => handler!(op, |core, o| test(core, o, 0x8000_0000_0000_0000_8000_0000_0000_0000)),
        _ => None,
    }
}

/// Host instructions that raise the exceptions of quiet and of signalling predicates.
type Hosts = [fn(u32, u128, u128) -> (u128, u32); 2];

fn packed<const BITS: u32>(core: &mut Core, op: &Op, hosts: Hosts) -> Flow {
    let b = rm(core, op)?;
    let a = other(core, op);
    let r = compute(core, op, |core, n| compare::<BITS>(core, a[n], b[n], immediate(op), hosts))?;
    set(core, op, r);
    Ok(())
}

fn scalar<const BITS: u32>(core: &mut Core, op: &Op, hosts: Hosts) -> Flow {
    let b = rm(core, op)?[0];
    let a = other(core, op)[0];
    let r = compare::<BITS>(core, a, b, immediate(op), hosts)?;
    set_ymm(core, op.dst, [merge::<BITS>(a, r), 0]);
    Ok(())
}

/// Compares all elements. An element of the result is all ones if the predicate holds, else zero.
fn compare<const BITS: u32>(
    core: &mut Core,
    a: u128,
    b: u128,
    predicate: u64,
    hosts: Hosts,
) -> Result<u128, Stop> {
    let signals = (SIGNALLING >> (predicate & 15) & 1 != 0) != (predicate & 16 != 0);
    float::run(core, |mxcsr| hosts[usize::from(signals)](mxcsr, a, b))?;
    let zero_denormals = core.fpu.mxcsr & float::DAZ != 0;
    let holds = HOLDS[(predicate & 15) as usize];
    let ones = u128::MAX >> (128 - BITS);
    Ok((0..128 / BITS).fold(0, |r, n| {
        let number = |x: u128| number::<BITS>((x >> (n * BITS) & ones) as u64, zero_denormals);
        if holds & relation(number(a), number(b)) != 0 { r | ones << (n * BITS) } else { r }
    }))
}

/// Returns the value of an element.
fn number<const BITS: u32>(x: u64, zero_denormals: bool) -> f64 {
    let (v, denormal) = if BITS == 32 {
        (f64::from(f32::from_bits(x as u32)), x & 0x7f80_0000 == 0)
    } else {
        (f64::from_bits(x), x & 0x7ff0_0000_0000_0000 == 0)
    };
    if denormal && zero_denormals { 0.0 } else { v }
}

fn relation(a: f64, b: f64) -> u8 {
    match a.partial_cmp(&b) {
        None => UNORDERED,
        Some(std::cmp::Ordering::Less) => LESS,
        Some(std::cmp::Ordering::Equal) => EQUAL,
        Some(std::cmp::Ordering::Greater) => GREATER,
    }
}

/// Sets ZF if no bit of the mask is set in both operands, and CF if none is set in the second only.
fn test(core: &mut Core, op: &Op, mask: u128) -> Flow {
    let b = rm(core, op)?;
    let a: Ymm = ymm(core, op.dst);
    let any = |f: fn(u128, u128) -> u128| f(a[0], b[0]) & mask != 0 || wide(op) && f(a[1], b[1]) & mask != 0;
    let zf = if any(|a, b| a & b) { 0 } else { bits::ZF };
    let cf = if any(|a, b| !a & b) { 0 } else { bits::CF };
    core.flags = Flags::from_bits(zf | cf);
    Ok(())
}

//! String compares: PCMPESTRI, PCMPESTRM, PCMPISTRI, PCMPISTRM (SDM vol. 2B, 4.1).

use super::operand::{load_unaligned, set_xmm, usable, xmm};
use crate::core::Core;
use crate::flags::{Flags, bits};
use crate::op::operand::is_memory;
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

/// Register slots of RAX, RCX and RDX.
const RAX: usize = 0;
const RCX: usize = 1;
const RDX: usize = 2;

/// Source of the two string lengths.
trait Lengths {
    /// Returns the number of valid elements of the first and of the second operand.
    fn of(core: &Core, a: &Elements, b: &Elements) -> (usize, usize);
}
/// Implicit lengths: the first zero element ends a string.
struct Implicit;
/// Explicit lengths in EAX and EDX.
struct Explicit32;
/// Explicit lengths in RAX and RDX.
struct Explicit64;

impl Lengths for Implicit {
    fn of(_: &Core, a: &Elements, b: &Elements) -> (usize, usize) {
        (a.until_zero(), b.until_zero())
    }
}
impl Lengths for Explicit32 {
    fn of(core: &Core, a: &Elements, _: &Elements) -> (usize, usize) {
        let length = |r: usize| (core.regs[r] as i32).unsigned_abs().min(a.n as u32) as usize;
        (length(RAX), length(RDX))
    }
}
impl Lengths for Explicit64 {
    fn of(core: &Core, a: &Elements, _: &Elements) -> (usize, usize) {
        let length = |r: usize| (core.regs[r] as i64).unsigned_abs().min(a.n as u64) as usize;
        (length(RAX), length(RDX))
    }
}

/// Chooses the handler of a string compare. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    let memory = is_memory(i, 1);
    op.run = match i.mnemonic() {
        Pcmpistri if memory => index::<Implicit, true>,
        Pcmpistri => index::<Implicit, false>,
        Pcmpistrm if memory => mask::<Implicit, true>,
        Pcmpistrm => mask::<Implicit, false>,
        Pcmpestri if memory => index::<Explicit32, true>,
        Pcmpestri => index::<Explicit32, false>,
        Pcmpestrm if memory => mask::<Explicit32, true>,
        Pcmpestrm => mask::<Explicit32, false>,
        Pcmpestri64 if memory => index::<Explicit64, true>,
        Pcmpestri64 => index::<Explicit64, false>,
        Pcmpestrm64 if memory => mask::<Explicit64, true>,
        Pcmpestrm64 => mask::<Explicit64, false>,
        _ => return None,
    };
    Some(Kind::Straight)
}

fn operands<const MEMORY: bool>(core: &mut Core, op: &Op) -> Result<(u128, u128), crate::stop::Stop> {
    usable(core)?;
    let b = if MEMORY { load_unaligned(core, op)? } else { xmm(core, op.src) };
    Ok((xmm(core, op.dst), b))
}

fn index<L: Lengths, const MEMORY: bool>(core: &mut Core, op: &Op) -> Flow {
    let (a, b) = operands::<MEMORY>(core, op)?;
    let found = compare::<L>(core, a, b, op.imm);
    core.regs[RCX] = match found.bits {
        0 => found.n as u64,
        r if op.imm & 0x40 != 0 => u64::from(r.ilog2()),
        r => u64::from(r.trailing_zeros()),
    };
    core.flags = found.flags;
    Ok(())
}

fn mask<L: Lengths, const MEMORY: bool>(core: &mut Core, op: &Op) -> Flow {
    let (a, b) = operands::<MEMORY>(core, op)?;
    let found = compare::<L>(core, a, b, op.imm);
    let r = if op.imm & 0x40 == 0 {
        u128::from(found.bits)
    } else {
        let width = 128 / found.n;
        let one = (1u128 << width) - 1;
        (0..found.n).filter(|n| found.bits >> n & 1 != 0).fold(0, |r, n| r | one << (n * width))
    };
    set_xmm(core, 0, r);
    core.flags = found.flags;
    Ok(())
}

/// Elements of an operand.
struct Elements {
    v: [i32; 16],
    n: usize,
}

impl Elements {
    /// Splits an operand into elements. Bits 0-1 of `imm` select the format: bytes or words, unsigned or signed.
    fn new(x: u128, imm: u64) -> Elements {
        let mut v = [0; 16];
        let n = if imm & 1 != 0 { 8 } else { 16 };
        for (i, e) in v.iter_mut().enumerate().take(n) {
            *e = match imm & 3 {
                0 => i32::from((x >> (8 * i)) as u8),
                1 => i32::from((x >> (16 * i)) as u16),
                2 => i32::from((x >> (8 * i)) as i8),
                _ => i32::from((x >> (16 * i)) as i16),
            };
        }
        Elements { v, n }
    }
    fn until_zero(&self) -> usize {
        self.v[..self.n].iter().position(|&e| e == 0).unwrap_or(self.n)
    }
}

/// Result of a compare: `IntRes2` of the manual, the number of elements, and the flags.
struct Found {
    bits: u32,
    n: usize,
    flags: Flags,
}

fn compare<L: Lengths>(core: &Core, a: u128, b: u128, imm: u64) -> Found {
    let (a, b) = (Elements::new(a, imm), Elements::new(b, imm));
    let lengths = L::of(core, &a, &b);
    aggregate(&a, &b, lengths, imm)
}

/// Compares the valid elements as bits 2-5 of `imm` say. Bits 2-3 are the operation, bits 4-5 the polarity.
fn aggregate(a: &Elements, b: &Elements, (a_len, b_len): (usize, usize), imm: u64) -> Found {
    let n = a.n;
    let (a_valid, b_valid) = (&a.v[..a_len], &b.v[..b_len]);
    let holds = |j: usize| match imm >> 2 & 3 {
        // Equal any.
        0 => j < b_len && a_valid.contains(&b.v[j]),
        // Ranges: pairs of bounds. An incomplete pair at the end has no effect.
        1 => j < b_len && a_valid.chunks_exact(2).any(|r| r[0] <= b.v[j] && b.v[j] <= r[1]),
        // Equal each: elements that are beyond the end of both strings are equal.
        2 => match (j < a_len, j < b_len) {
            (true, true) => a.v[j] == b.v[j],
            (x, y) => x == y,
        },
        // Equal ordered: the first string occurs at position `j` of the second, or the register ends within this
        // occurrence.
        _ => a_valid.iter().zip(j..n).all(|(e, at)| b_valid.get(at) == Some(e)),
    };
    let all = (1u32 << n) - 1;
    let first = (0..n).filter(|&j| holds(j)).fold(0u32, |r, j| r | 1 << j);
    let bits = match imm >> 4 & 3 {
        1 => first ^ all,
        3 => first ^ ((1u32 << b_len) - 1),
        _ => first,
    };
    let mut f = 0;
    if bits != 0 {
        f |= bits::CF;
    }
    if b_len < n {
        f |= bits::ZF;
    }
    if a_len < n {
        f |= bits::SF;
    }
    if bits & 1 != 0 {
        f |= bits::OF;
    }
    Found { bits, n, flags: Flags::from_bits(f) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: u64 = 0b1000;
    const RANGES: u64 = 0b0100;
    const ORDERED: u64 = 0b1100;
    const NEGATED: u64 = 0b01_0000;
    const NEGATED_VALID: u64 = 0b11_0000;

    fn text(s: &str) -> u128 {
        let mut bytes = [0; 16];
        bytes[..s.len()].copy_from_slice(s.as_bytes());
        u128::from_le_bytes(bytes)
    }
    fn found(a: u128, b: u128, imm: u64) -> (u32, u64) {
        let (a, b) = (Elements::new(a, imm), Elements::new(b, imm));
        let found = aggregate(&a, &b, (a.until_zero(), b.until_zero()), imm);
        (found.bits, found.flags.to_bits())
    }

    #[test]
    fn the_four_ways_to_compare() {
        // CF: there is a match. ZF: the second operand is shorter than the register. SF: the first operand is shorter.
        // OF: the first element matches.
        let ends = bits::ZF | bits::SF;
        assert_eq!(found(text("ei"), text("everett"), 0), (0b10101, ends | bits::CF | bits::OF));
        assert_eq!(found(text("azAZ"), text("a-Z9z"), RANGES), (0b10101, ends | bits::CF | bits::OF));
        assert_eq!(found(text("abc"), text("abd"), EACH), (0xfffb, ends | bits::CF | bits::OF));
        assert_eq!(found(text("tt"), text("everett"), ORDERED), (0b100000, ends | bits::CF));
        assert_eq!(found(text("x"), text("everett"), 0), (0, ends));
    }

    #[test]
    fn negation_is_of_all_or_of_valid_elements() {
        assert_eq!(found(text("e"), text("ever"), NEGATED).0, 0xfffa);
        assert_eq!(found(text("e"), text("ever"), NEGATED_VALID).0, 0b1010);
    }

    #[test]
    fn words_count_eight() {
        let a = 0x0041;
        let b = 0x0041_0000_0000_0000_0000_0042_0041;
        assert_eq!(found(a, b, 1).0, 1);
        assert_eq!(found(a, u128::MAX, 1 | NEGATED).0, 0xff);
    }
}

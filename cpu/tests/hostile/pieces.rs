//! Emits ordinary instructions. The CPU translates most of them, and executes some in functions of Everett (handlers).
//! Nearly all complete without a fault.

use crate::code::{Code, Rm};
use crate::rng::Rng;
use crate::world::somewhere;

/// Registers that code may change freely: all except the loop counter RCX and the stack pointer.
const FREE: [u8; 14] = [0, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
/// Registers that initially hold addresses.
pub(crate) const POINTERS: [u8; 6] = [3, 5, 6, 7, 13, 15];
pub(crate) const RCX: u8 = 1;
pub(crate) const RSP: u8 = 4;

pub(crate) fn free(rng: &mut Rng) -> u8 {
    rng.pick(&FREE)
}
pub(crate) fn width(rng: &mut Rng) -> u8 {
    rng.pick(&[1, 2, 4, 4, 8, 8])
}

/// Returns a memory operand. Usually, its base is a register that probably holds an address, and the displacement is
/// small. Sometimes, the operand is an absolute address.
pub(crate) fn memory(rng: &mut Rng) -> Rm {
    let base = rng.pick(&POINTERS);
    match rng.below(8) {
        0 => Rm::Sum(base, RCX, rng.below(4) as u8, rng.below(64) as i32 - 32),
        1 => Rm::Abs(somewhere(rng) as u32 & 0x7fff_ffff),
        2 => Rm::At(base, rng.below(0x2000) as i32 - 0x1000),
        _ => Rm::At(base, rng.below(24) as i32 - 8),
    }
}

/// Returns a random register or memory operand.
fn any(rng: &mut Rng) -> Rm {
    if rng.one_in(3) { memory(rng) } else { Rm::Reg(free(rng)) }
}

/// Emits one ordinary instruction, or a short sequence.
pub(crate) fn piece(c: &mut Code, rng: &mut Rng) {
    if rng.one_in(24) {
        // A random prefix, which may have no effect.
        c.raw(&[rng.pick(&[0x66, 0x67, 0x2e, 0x3e, 0x64, 0x65, 0xf2, 0xf3, 0x40, 0x48, 0x4f])]);
    }
    let (w, reg) = (width(rng), free(rng));
    match rng.below(30) {
        0..=4 => {
            let alu = rng.below(8) as u8 * 8;
            let rm = any(rng);
            c.op(w, &[alu | rng.pick(&[1, 3])], reg, rm);
        }
        5..=6 => {
            // Arithmetic with an immediate operand. Code from the module `attacks` may overwrite this operand.
            let alu = rng.below(8) as u8;
            c.op(rng.pick(&[4, 8]), &[0x81], alu, Rm::Reg(reg));
            c.imm32(rng.next() as u32 & 0xfff);
            c.site(4);
        }
        7 => {
            c.raw(&[0x48, 0xb8]);
            c.raw(&rng.below(1 << 40).to_le_bytes());
            c.site(8);
        }
        8 => {
            let rm = any(rng);
            c.op(w, &[0x81], rng.below(8) as u8, rm);
            let imm = rng.next().to_le_bytes();
            c.raw(&imm[..usize::from(w.min(4))]);
        }
        9..=11 => {
            let rm = memory(rng);
            c.op(w, &[rng.pick(&[0x89, 0x8b])], reg, rm);
        }
        12 => {
            let rm = any(rng);
            c.op(rng.pick(&[4, 8]), &[0x0f, rng.pick(&[0xb6, 0xb7, 0xbe, 0xbf, 0xaf])], reg, rm);
        }
        13 => {
            let rm = any(rng);
            c.op(w, &[0xff], rng.below(2) as u8, rm);
        }
        14 => {
            let rm = any(rng);
            c.op(w, &[0xf7], rng.pick(&[2, 3, 2, 3, 4, 5, 6]), rm);
        }
        15 => {
            let rm = any(rng);
            c.op(w, &[0xc1], rng.pick(&[0, 1, 4, 5, 7, 2]), rm);
            c.raw(&[rng.next() as u8]);
        }
        16 => c.op(w, &[rng.pick(&[0xd3, 0xd1])], rng.pick(&[0, 1, 4, 5, 7, 3]), Rm::Reg(reg)),
        17 => {
            let rm = memory(rng);
            c.op(8, &[0x8d], reg, rm);
        }
        18 => {
            // SETcc, which has byte operands only, or CMOVcc.
            let condition = rng.below(16) as u8;
            let rm = any(rng);
            if rng.one_in(2) {
                c.op(4, &[0x0f, 0x90 | condition], 0, rm);
            } else {
                c.op(rng.pick(&[2, 4, 8]), &[0x0f, 0x40 | condition], reg, rm);
            }
        }
        19 => {
            let rm = any(rng);
            c.op(w, &[0x85], reg, rm);
        }
        20 => {
            // XCHG, XADD, CMPXCHG, BTS or BTC. BTS and BTC have no byte form. Some instructions get LOCK, which
            // requires a memory operand.
            let rm = any(rng);
            let (opcode, narrowest): (&[u8], u8) = rng.pick(&[
                (&[0x87], 1),
                (&[0x0f, 0xc1], 1),
                (&[0x0f, 0xb1], 1),
                (&[0x0f, 0xab], 2),
                (&[0x0f, 0xbb], 2),
            ]);
            if rng.one_in(4) && !matches!(rm, Rm::Reg(_)) {
                c.raw(&[0xf0]);
            }
            c.op(w.max(narrowest), opcode, reg, rm);
        }
        21 => {
            c.push(reg);
            c.pop(free(rng));
        }
        22 => {
            c.raw(&[0x9c]);
            c.pop(reg);
        }
        23 => {
            // A conditional jump over up to eight bytes. Its target may be inside an instruction.
            let over = rng.below(9) as u8;
            c.raw(&[0x70 | rng.below(16) as u8, over]);
        }
        24 => {
            // MOVUPS as a load or store, or XORPS, whose memory operand must be aligned.
            let rm = memory(rng);
            c.op(4, rng.pick(&[&[0x0f, 0x10], &[0x0f, 0x11], &[0x0f, 0x57]]), rng.below(8) as u8, rm);
        }
        25 => {
            // An x87 instruction without REX.
            let base = rng.pick(&[3, 5, 6, 7]);
            c.raw(&[0xd8 + rng.below(8) as u8]);
            c.modrm(rng.below(8) as u8, Rm::At(base, rng.below(24) as i32 - 8));
        }
        26 => {
            // A short string instruction. R8 preserves the loop counter.
            c.op(8, &[0x89], RCX, Rm::Reg(8));
            c.set(RCX, rng.below(24));
            c.raw(&[
                rng.pick(&[0xf3, 0xf2]),
                0x48 | 0x40,
                rng.pick(&[0xa4, 0xa5, 0xaa, 0xab, 0xae, 0xa6, 0xac]),
            ]);
            c.op(8, &[0x89], 8, Rm::Reg(RCX));
        }
        27 => {
            // A memory operand with an FS or GS prefix, or a RIP-relative operand.
            if rng.one_in(2) {
                c.raw(&[rng.pick(&[0x64, 0x65])]);
                let rm = memory(rng);
                c.op(4, &[rng.pick(&[0x89, 0x8b, 0x01, 0x3b])], reg, rm);
            } else {
                let at = somewhere(rng);
                c.op(8, &[rng.pick(&[0x8d, 0x8b, 0x89, 0x01])], reg, Rm::Rip(at, 0));
            }
        }
        28 => c.raw(rng.pick(&[
            &[0x48, 0x98][..],
            &[0x98],
            &[0x90],
            &[0x0f, 0xc8],
            &[0xf8],
            &[0xf5],
            &[0x99],
            &[0x0f, 0x31],
            &[0xc9],
            &[0x9e],
            &[0xd7],
        ])),
        _ => {
            // Moves a pointer forwards or backwards.
            let pointer = rng.pick(&POINTERS);
            c.op(8, &[0x83], rng.pick(&[0, 5]), Rm::Reg(pointer));
            c.raw(&[rng.pick(&[1, 2, 4, 8, 7, 16])]);
        }
    }
}

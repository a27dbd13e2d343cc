//! Emits instructions on XMM registers: moves and integer operations, which the CPU translates to host code, and some
//! operations that it does not translate but executes by calls of Rust functions.

use crate::code::{Code, Rm};
use crate::pieces::{free, memory};
use crate::rng::Rng;

/// Opcodes `66 0F xx` with two vector operands. A memory operand must be aligned.
const INTEGER: [u8; 48] = [
    0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x74, 0x75, 0x76,
    0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd8, 0xda, 0xdb, 0xdc, 0xde, 0xdf, 0xe0, 0xe1, 0xe4, 0xe5, 0xe8, 0xea,
    0xeb, 0xec, 0xee, 0xef, 0xf1, 0xf2, 0xf4, 0xf5, 0xf6, 0xf8, 0xfa, 0xfb, 0xfc, 0xfe,
];
/// Opcodes `66 0F 38 xx`, with the same operands.
const LATER: [u8; 20] = [
    0x00, 0x04, 0x1c, 0x1d, 0x1e, 0x28, 0x29, 0x2b, 0x37, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f,
    0x40, 0x10, 0x41,
];

/// Emits one vector instruction.
pub(crate) fn vector(c: &mut Code, rng: &mut Rng) {
    let reg = rng.below(16) as u8;
    let rm = if rng.one_in(3) { memory(rng) } else { Rm::Reg(rng.below(16) as u8) };
    match rng.below(16) {
        0..=3 => with(c, &[0x66], &[0x0f, rng.pick(&INTEGER)], reg, rm),
        4 => with(c, &[0x66], &[0x0f, 0x38, rng.pick(&LATER)], reg, rm),
        5..=6 => {
            // Loads and stores of sixteen bytes, some of which require alignment.
            let prefix: &[u8] = rng.pick(&[&[][..], &[0x66]]);
            with(c, prefix, &[0x0f, rng.pick(&[0x10, 0x11, 0x28, 0x29])], reg, rm);
        }
        7 => with(c, &[rng.pick(&[0x66, 0xf3])], &[0x0f, rng.pick(&[0x6f, 0x7f])], reg, rm),
        8 => with(c, &[rng.pick(&[0xf3, 0xf2])], &[0x0f, rng.pick(&[0x10, 0x11, 0x12, 0x16])], reg, rm),
        9 => {
            let prefix: &[u8] = rng.pick(&[&[][..], &[0x66]]);
            with(c, prefix, &[0x0f, rng.pick(&[0x12, 0x13, 0x14, 0x15, 0x16, 0x17])], reg, rm);
        }
        10 => match rng.below(3) {
            0 => with(c, &[0xf3], &[0x0f, 0x7e], reg, rm),
            1 => with(c, &[0x66], &[0x0f, 0xd6], reg, rm),
            _ => with(c, &[0xf2], &[0x0f, 0xf0], reg, memory(rng)),
        },
        11 => {
            // Moves between XMM registers, general registers and memory.
            let rm = if rng.one_in(3) { memory(rng) } else { Rm::Reg(free(rng)) };
            c.raw(&[0x66]);
            c.op(rng.pick(&[4, 8]), &[0x0f, rng.pick(&[0x6e, 0x7e])], reg, rm);
        }
        12 => {
            // PMOVMSKB, MOVMSKPS, MOVMSKPD.
            let (prefix, opcode): (&[u8], u8) = rng.pick(&[(&[0x66], 0xd7), (&[], 0x50), (&[0x66], 0x50)]);
            with(c, prefix, &[0x0f, opcode], free(rng), Rm::Reg(rng.below(16) as u8));
        }
        13 => {
            let (prefix, opcode): (&[u8], &[u8]) = rng.pick(&[
                (&[0x66], &[0x0f, 0x70]),
                (&[0xf2], &[0x0f, 0x70]),
                (&[0xf3], &[0x0f, 0x70]),
                (&[], &[0x0f, 0xc6]),
                (&[0x66], &[0x0f, 0xc6]),
                (&[0x66], &[0x0f, 0x3a, 0x0f]),
            ]);
            with(c, prefix, opcode, reg, rm);
            c.raw(&[rng.next() as u8]);
        }
        14 => {
            let (opcode, by): (u8, u8) = rng.pick(&[
                (0x71, 2),
                (0x71, 4),
                (0x71, 6),
                (0x72, 2),
                (0x72, 4),
                (0x72, 6),
                (0x73, 2),
                (0x73, 3),
                (0x73, 7),
            ]);
            with(c, &[0x66], &[0x0f, opcode], by, Rm::Reg(reg));
            c.raw(&[rng.below(40) as u8]);
        }
        _ => {
            // Floating-point logic, arithmetic and compares.
            let prefix: &[u8] = rng.pick(&[&[][..], &[0x66]]);
            with(
                c,
                prefix,
                &[0x0f, rng.pick(&[0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5c, 0x5e, 0x2e])],
                reg,
                rm,
            );
        }
    }
}

/// Emits an instruction with a mandatory prefix, which must come before REX.
fn with(c: &mut Code, prefix: &[u8], opcode: &[u8], reg: u8, rm: Rm) {
    c.raw(prefix);
    c.op(4, opcode, reg, rm);
}

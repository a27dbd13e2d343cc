//! Emits instructions that only the model `v3` with its extras has: VEX encodings, the XSAVE family, MOVBE, AES and SHA.

use crate::code::{Code, Rm};
use crate::pieces::{free, memory};
use crate::rng::Rng;

/// Opcodes of VEX encodings in the map 0F with a prefix 66, a first and a second source.
const INTEGER: [u8; 24] = [
    0x60, 0x61, 0x64, 0x67, 0x6b, 0x6c, 0x74, 0x76, 0xd2, 0xd4, 0xda, 0xdb, 0xdf, 0xe1, 0xe4, 0xe5, 0xeb,
    0xef, 0xf2, 0xf4, 0xf5, 0xf6, 0xfa, 0xfe,
];
/// The same in the map 0F38: integers, permutations, variable shifts and fused multiply-adds.
const LATER: [u8; 24] = [
    0x00, 0x01, 0x0b, 0x0c, 0x28, 0x29, 0x2b, 0x36, 0x37, 0x3a, 0x40, 0x45, 0x46, 0x47, 0x96, 0x98, 0x99,
    0x9d, 0xa8, 0xac, 0xb6, 0xb8, 0xbb, 0xbf,
];
/// The same in the map 0F, for floating-point numbers, with any prefix.
const FLOATING: [u8; 10] = [0x14, 0x51, 0x54, 0x57, 0x58, 0x59, 0x5c, 0x5d, 0x5e, 0x5f];

/// Fields of a VEX prefix besides those of the operands.
struct Vex {
    /// 1 for 0F, 2 for 0F38, 3 for 0F3A.
    map: u8,
    /// 0 for none, 1 for 66, 2 for F3, 3 for F2.
    prefix: u8,
    wide: bool,
    w: bool,
}

/// Emits an instruction with a VEX prefix of three bytes. `other` is the register that ModRM does not name.
fn vex(c: &mut Code, Vex { map, prefix, wide, w }: Vex, opcode: u8, (reg, other): (u8, u8), rm: Rm) {
    let (base, index) = match rm {
        Rm::Reg(r) | Rm::At(r, _) => (r, 0),
        Rm::Sum(base, index, ..) => (base, index),
        Rm::Abs(_) | Rm::Rip(..) => (0, 0),
    };
    let extensions = (!(reg >> 3) & 1) << 7 | (!(index >> 3) & 1) << 6 | (!(base >> 3) & 1) << 5;
    let last = u8::from(w) << 7 | (!other & 15) << 3 | u8::from(wide) << 2 | prefix;
    c.raw(&[0xc4, extensions | map, last, opcode]);
    c.modrm(reg, rm);
}

/// Emits one instruction.
pub(crate) fn extended(c: &mut Code, rng: &mut Rng) {
    let register = |rng: &mut Rng| rng.below(16) as u8;
    let (reg, other, wide) = (register(rng), register(rng), rng.one_in(2));
    let rm = if rng.one_in(3) { memory(rng) } else { Rm::Reg(register(rng)) };
    let of = |map, prefix, w| Vex { map, prefix, wide, w };
    match rng.below(20) {
        0..=4 => vex(c, of(1, 1, false), rng.pick(&INTEGER), (reg, other), rm),
        5..=7 => {
            let opcode = rng.pick(&LATER);
            let w = opcode >= 0x45 && rng.one_in(2);
            vex(c, of(2, 1, w), opcode, (reg, other), rm);
        }
        8..=9 => vex(c, of(1, rng.below(4) as u8, false), rng.pick(&FLOATING), (reg, other), rm),
        10..=11 => {
            // Moves, some of which require alignment.
            let (prefix, opcode) = rng.pick(&[
                (0, 0x10),
                (0, 0x11),
                (1, 0x28),
                (1, 0x29),
                (1, 0x6f),
                (2, 0x6f),
                (1, 0x7f),
                (2, 0x7f),
            ]);
            vex(c, of(1, prefix, false), opcode, (reg, 0), rm);
        }
        12 => {
            // Broadcasts, insertions and extractions, and masked moves.
            let (map, opcode) = rng.pick(&[
                (2, 0x18),
                (2, 0x1a),
                (2, 0x58),
                (2, 0x59),
                (2, 0x5a),
                (2, 0x78),
                (2, 0x2c),
                (2, 0x2e),
                (2, 0x8c),
                (2, 0x8e),
                (3, 0x06),
                (3, 0x18),
                (3, 0x19),
                (3, 0x38),
                (3, 0x39),
                (3, 0x46),
                (3, 0x4c),
            ]);
            vex(c, of(map, 1, false), opcode, (reg, if map == 2 && opcode > 0x80 { other } else { 0 }), rm);
            if map == 3 {
                c.raw(&[rng.next() as u8]);
            }
        }
        13 => {
            // A gather. Most indices lead to addresses without memory.
            let index = register(rng);
            vex(
                c,
                of(2, 1, rng.one_in(2)),
                0x90 + rng.below(4) as u8,
                (reg, other),
                Rm::Sum(3, index | 8, 0, 0),
            );
        }
        14 => vex(c, Vex { map: 1, prefix: 0, wide, w: false }, 0x77, (0, 0), Rm::Reg(0)),
        15..=16 => {
            // BMI1, BMI2, and MOVBE.
            let (prefix, opcode) = rng.pick(&[
                (0, 0xf2),
                (0, 0xf3),
                (0, 0xf5),
                (2, 0xf5),
                (3, 0xf5),
                (3, 0xf6),
                (0, 0xf7),
                (1, 0xf7),
            ]);
            let reg = if opcode == 0xf3 { 1 + rng.below(3) as u8 } else { free(rng) };
            let rm = if rng.one_in(3) { memory(rng) } else { Rm::Reg(free(rng)) };
            match rng.below(4) {
                0 => {
                    c.op(rng.pick(&[2, 4, 8]), &[0x0f, 0x38, rng.pick(&[0xf0, 0xf1])], free(rng), memory(rng))
                }
                1 => {
                    c.raw(&[0xf3]);
                    c.op(rng.pick(&[4, 8]), &[0x0f, rng.pick(&[0xbc, 0xbd])], free(rng), rm);
                }
                _ => vex(
                    c,
                    Vex { map: 2, prefix, wide: false, w: rng.one_in(2) },
                    opcode,
                    (reg, free(rng)),
                    rm,
                ),
            }
        }
        17 => {
            // XSAVE, XRSTOR, XSAVEOPT and XSAVEC. Most areas are not aligned, or have an invalid header.
            let (opcode, extension) = rng.pick(&[(0xae, 4), (0xae, 5), (0xae, 6), (0xc7, 4)]);
            c.raw(&[0x83, 0xe3, 0xc0]); // and ebx, -64
            c.op(rng.pick(&[4, 8]), &[0x0f, opcode], extension, Rm::At(3, 0));
        }
        18 => {
            c.raw(&[0x66]);
            c.op(4, &[0x0f, 0x38, 0xdb + rng.below(5) as u8], reg, rm);
        }
        _ => c.op(4, &[0x0f, 0x38, 0xc8 + rng.below(6) as u8], reg, rm),
    }
}

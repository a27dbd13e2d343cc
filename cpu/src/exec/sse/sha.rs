//! The SHA instructions, computed in software (FIPS 180-4; SDM vol. 2B, SHA1RNDS4 and following).

use super::operand::{set_xmm, usable, xmm, xmm_op};
use crate::core::Core;
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    match i.mnemonic() {
        Sha1rnds4 => xmm_op!(i, op, u128, |c, o, a, b| sha1_rounds(a, b, o.imm)),
        Sha1nexte => xmm_op!(i, op, u128, |c, o, a, b| {
            let [.., e] = words(a);
            b.wrapping_add(u128::from(e.rotate_left(30)) << 96)
        }),
        Sha1msg1 => xmm_op!(i, op, u128, |c, o, a, b| a ^ (a << 64 | b >> 64)),
        Sha1msg2 => xmm_op!(i, op, u128, |c, o, a, b| sha1_schedule(a, b)),
        Sha256rnds2 => xmm_op!(i, op, u128, |c, o, a, b| sha256_rounds(a, b, xmm(c, 0) as u64)),
        Sha256msg1 => xmm_op!(i, op, u128, |c, o, a, b| sha256_schedule_1(a, b)),
        Sha256msg2 => xmm_op!(i, op, u128, |c, o, a, b| sha256_schedule_2(a, b)),
        _ => None,
    }
}

/// Returns the dwords of a vector, the lowest first.
fn words(x: u128) -> [u32; 4] {
    std::array::from_fn(|n| (x >> (32 * n)) as u32)
}

/// Returns a vector of dwords, the lowest first.
fn vector(words: [u32; 4]) -> u128 {
    words.iter().rev().fold(0, |r, &v| r << 32 | u128::from(v))
}

fn choose(x: u32, y: u32, z: u32) -> u32 {
    x & y ^ !x & z
}

fn majority(x: u32, y: u32, z: u32) -> u32 {
    x & y ^ x & z ^ y & z
}

/// SHA1RNDS4: four rounds with the function and the constant that bits 0-1 of `imm` select. The highest dword of `b`
/// already includes E.
fn sha1_rounds(a: u128, b: u128, imm: u64) -> u128 {
    const K: [u32; 4] = [0x5a82_7999, 0x6ed9_eba1, 0x8f1b_bcdc, 0xca62_c1d6];
    let which = (imm & 3) as usize;
    let [mut d, mut c, mut b_, mut a_] = words(a);
    let mut e = 0;
    for w in words(b).into_iter().rev() {
        let f = match which {
            0 => choose(b_, c, d),
            2 => majority(b_, c, d),
            _ => b_ ^ c ^ d,
        };
        let sum = [f, a_.rotate_left(5), w, e, K[which]].into_iter().fold(0, u32::wrapping_add);
        (a_, b_, c, d, e) = (sum, a_, b_.rotate_left(30), c, d);
    }
    vector([d, c, b_, a_])
}

/// SHA1MSG2: the last step of four dwords of the message schedule.
fn sha1_schedule(a: u128, b: u128) -> u128 {
    let [a3, a2, a1, a0] = words(a);
    let [w15, w14, w13, _] = words(b);
    let w16 = (a0 ^ w13).rotate_left(1);
    vector([(a3 ^ w16).rotate_left(1), (a2 ^ w15).rotate_left(1), (a1 ^ w14).rotate_left(1), w16])
}

/// SHA256RNDS2: two rounds. `wk` has the sums of message dword and constant, the first round's in the low half.
fn sha256_rounds(a: u128, b: u128, wk: u64) -> u128 {
    let [mut h, mut g, mut d, mut c] = words(a);
    let [mut f, mut e, mut b_, mut a_] = words(b);
    for wk in [wk as u32, (wk >> 32) as u32] {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let s0 = a_.rotate_right(2) ^ a_.rotate_right(13) ^ a_.rotate_right(22);
        let t1 = [choose(e, f, g), s1, wk, h].into_iter().fold(0, u32::wrapping_add);
        let t2 = s0.wrapping_add(majority(a_, b_, c));
        (h, g, f, e) = (g, f, e, d.wrapping_add(t1));
        (d, c, b_, a_) = (c, b_, a_, t1.wrapping_add(t2));
    }
    vector([f, e, b_, a_])
}

/// SHA256MSG1: the first step of four dwords of the message schedule.
fn sha256_schedule_1(a: u128, b: u128) -> u128 {
    let s0 = |w: u32| w.rotate_right(7) ^ w.rotate_right(18) ^ w >> 3;
    let [w0, w1, w2, w3] = words(a);
    let w4 = b as u32;
    let add = |w: u32, next: u32| w.wrapping_add(s0(next));
    vector([add(w0, w1), add(w1, w2), add(w2, w3), add(w3, w4)])
}

/// SHA256MSG2: the last step of four dwords of the message schedule.
fn sha256_schedule_2(a: u128, b: u128) -> u128 {
    let s1 = |w: u32| w.rotate_right(17) ^ w.rotate_right(19) ^ w >> 10;
    let [w0, w1, w2, w3] = words(a);
    let [_, _, w14, w15] = words(b);
    let w16 = w0.wrapping_add(s1(w14));
    let w17 = w1.wrapping_add(s1(w15));
    vector([w16, w17, w2.wrapping_add(s1(w16)), w3.wrapping_add(s1(w17))])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four rounds of SHA-1 as FIPS 180-4, 6.1.2 defines them, on the first message block of "abc".
    #[test]
    fn rounds_of_sha1_are_those_of_the_standard() {
        let (mut a, mut b, mut c, mut d, mut e) =
            (0x6745_2301u32, 0xefcd_ab89u32, 0x98ba_dcfeu32, 0x1032_5476u32, 0xc3d2_e1f0u32);
        let start = vector([d, c, b, a]);
        let message = [0x6162_6380u32, 0, 0, 0];
        let first = vector([message[3], message[2], message[1], message[0].wrapping_add(e)]);
        for w in message {
            let sum = [a.rotate_left(5), choose(b, c, d), e, 0x5a82_7999, w];
            let t = sum.into_iter().fold(0, u32::wrapping_add);
            (a, b, c, d, e) = (t, a, b.rotate_left(30), c, d);
        }
        assert_eq!(sha1_rounds(start, first, 0), vector([d, c, b, a]));
    }
}

//! AES-NI and PCLMULQDQ, computed in software (FIPS 197; SDM vol. 1, 12.13). A value's byte 0 is its lowest.

use super::operand::{set_xmm, usable, xmm, xmm_op};
use crate::core::Core;
use crate::op::{Kind, Op};
use crate::stop::Flow;
use iced_x86::{Instruction, Mnemonic};

/// Chooses the handler of an instruction of this module. Returns `None` for other instructions.
pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    use Mnemonic::*;
    match i.mnemonic() {
        Aesenc => xmm_op!(i, op, u128, |c, o, a, b| encrypt(a, b)),
        Aesenclast => xmm_op!(i, op, u128, |c, o, a, b| encrypt_last(a, b)),
        Aesdec => xmm_op!(i, op, u128, |c, o, a, b| decrypt(a, b)),
        Aesdeclast => xmm_op!(i, op, u128, |c, o, a, b| decrypt_last(a, b)),
        Aesimc => xmm_op!(i, op, u128, |c, o, a, b| unmix_columns(b)),
        Aeskeygenassist => xmm_op!(i, op, u128, |c, o, a, b| key_assist(b, o.imm)),
        Pclmulqdq => xmm_op!(i, op, u128, |c, o, a, b| carryless(a, b, o.imm)),
        _ => None,
    }
}

/// Multiplies by x in GF(2^8) with the polynomial of AES (FIPS 197, 4.2.1).
const fn double(v: u8) -> u8 {
    v << 1 ^ if v & 0x80 != 0 { 0x1b } else { 0 }
}

/// The S-box (FIPS 197, 5.1.1).
const SBOX: [u8; 256] = {
    let mut table = [0; 256];
    // `p` runs through all powers of the generator 3, and `q` through their inverses.
    let (mut p, mut q) = (1u8, 1u8);
    loop {
        p ^= double(p);
        q ^= q << 1;
        q ^= q << 2;
        q ^= q << 4;
        if q & 0x80 != 0 {
            q ^= 9;
        }
        let r = q ^ q.rotate_left(1) ^ q.rotate_left(2) ^ q.rotate_left(3) ^ q.rotate_left(4);
        table[p as usize] = r ^ 0x63;
        if p == 1 {
            break;
        }
    }
    table[0] = 0x63;
    table
};

/// The inverse of the S-box.
const UNSBOX: [u8; 256] = {
    let mut table = [0; 256];
    let mut n = 0;
    while n < 256 {
        table[SBOX[n] as usize] = n as u8;
        n += 1;
    }
    table
};

/// SubBytes and ShiftRows: row `r` moves left by `r` columns.
fn substitute(a: u128) -> u128 {
    let from = a.to_le_bytes();
    u128::from_le_bytes(std::array::from_fn(|n| SBOX[usize::from(from[(n + 4 * (n & 3)) & 15])]))
}

/// InvSubBytes and InvShiftRows.
fn unsubstitute(a: u128) -> u128 {
    let from = a.to_le_bytes();
    u128::from_le_bytes(std::array::from_fn(|n| UNSBOX[usize::from(from[(n + 12 * (n & 3)) & 15])]))
}

/// MixColumns (FIPS 197, 5.1.3).
fn mix_columns(a: u128) -> u128 {
    let s = a.to_le_bytes();
    u128::from_le_bytes(std::array::from_fn(|n| {
        let at = |k: usize| s[n & 12 | (n + k) & 3];
        double(at(0)) ^ double(at(1)) ^ at(1) ^ at(2) ^ at(3)
    }))
}

/// InvMixColumns (FIPS 197, 5.3.3), which is AESIMC.
pub(crate) fn unmix_columns(a: u128) -> u128 {
    // The inverse matrix is the product of MixColumns and a matrix with the polynomial 4x^2 + 5.
    let s = a.to_le_bytes();
    let prepared = std::array::from_fn(|n| {
        let (own, opposite) = (s[n], s[n & 12 | (n + 2) & 3]);
        own ^ double(double(own ^ opposite))
    });
    mix_columns(u128::from_le_bytes(prepared))
}

/// AESENC: one round of encryption.
pub(crate) fn encrypt(a: u128, key: u128) -> u128 {
    mix_columns(substitute(a)) ^ key
}

/// AESENCLAST: the last round of encryption.
pub(crate) fn encrypt_last(a: u128, key: u128) -> u128 {
    substitute(a) ^ key
}

/// AESDEC: one round of decryption by the equivalent inverse cipher.
pub(crate) fn decrypt(a: u128, key: u128) -> u128 {
    unmix_columns(unsubstitute(a)) ^ key
}

/// AESDECLAST: the last round of decryption.
pub(crate) fn decrypt_last(a: u128, key: u128) -> u128 {
    unsubstitute(a) ^ key
}

/// AESKEYGENASSIST with the round constant `imm`.
pub(crate) fn key_assist(b: u128, imm: u64) -> u128 {
    let word = |n: u32| {
        let bytes = ((b >> (32 * n)) as u32).to_le_bytes();
        u32::from_le_bytes(bytes.map(|byte| SBOX[usize::from(byte)]))
    };
    let rotated = |v: u32| v.rotate_right(8) ^ imm as u32 & 0xff;
    let words = [word(1), rotated(word(1)), word(3), rotated(word(3))];
    words.iter().rev().fold(0, |r, &v| r << 32 | u128::from(v))
}

/// PCLMULQDQ: the carry-less product of a qword of `a` (bit 0 of `imm`) and a qword of `b` (bit 4).
pub(crate) fn carryless(a: u128, b: u128, imm: u64) -> u128 {
    let x = if imm & 1 != 0 { a >> 64 } else { a & u128::from(u64::MAX) };
    let y = if imm & 0x10 != 0 { b >> 64 } else { b };
    (0..64).filter(|n| y >> n & 1 != 0).fold(0, |r, n| r ^ x << n)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, appendix B: round 1, whose state is given in the order of bytes.
    #[test]
    fn a_round_is_that_of_the_standard() {
        let bytes = |text: u128| text.swap_bytes();
        let start = bytes(0x193d_e3be_a0f4_e22b_9ac6_8d2a_e9f8_4808);
        let key = bytes(0xa0fa_fe17_8854_2cb1_23a3_3939_2a6c_7605);
        assert_eq!(encrypt(start, key), bytes(0xa49c_7ff2_689f_352b_6b5b_ea43_026a_5049));
    }

    #[test]
    fn decryption_undoes_encryption() {
        let (a, key) = (0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978, 0xdead_beef << 70);
        assert_eq!(decrypt_last(encrypt_last(a, 0), key), a ^ key);
        assert_eq!(decrypt(encrypt_last(a, 0), 0), unmix_columns(a));
        assert_eq!(unmix_columns(mix_columns(a)), a);
    }

    #[test]
    fn products_have_no_carries() {
        assert_eq!(carryless(3, 3, 0), 5);
        assert_eq!(carryless(1 << 127, 1 << 127, 0x11), 1 << 126);
        assert_eq!(carryless(u128::MAX, 2, 0x01), u128::from(u64::MAX) << 1);
    }
}

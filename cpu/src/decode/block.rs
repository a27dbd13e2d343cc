//! Building of a block: decodes up to control flow, the end of the page, or a bound.

use super::lower::{lower, too_long};
use crate::exec::system::flag::sti_within;
use crate::op::{Kind, Op};
use iced_x86::{Decoder, DecoderError, DecoderOptions, Mnemonic};

/// Maximum number of instructions in a block. `Op::idx` counts them.
pub(crate) const BLOCK_INSTRUCTIONS_MAX: usize = 64;
/// Maximum length of an instruction in bytes (SDM vol. 2A, 2.3.11).
pub(crate) const INSTRUCTION_BYTES_MAX: usize = 15;

/// TZCNT, LZCNT and MOVBE are outside the model: the encodings of the first two mean BSF and BSR, that of MOVBE is
/// undefined.
pub(crate) const OPTIONS: u32 =
    DecoderOptions::NO_MPFX_0FBC | DecoderOptions::NO_MPFX_0FBD | DecoderOptions::NO_WBNOINVD;

/// Reason for the end of decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Control flow, the bound, or the exact end of the bytes was reached.
    Complete,
    /// The next instruction continues beyond the bytes. It is not part of the block.
    Straddles,
}

/// True if fifteen bytes that do not decode would be a valid instruction without their redundant prefixes. Then the
/// only fault is the length, which raises #GP instead of #UD.
fn only_too_long(bytes: &[u8]) -> bool {
    let is_prefix =
        |b: u8| matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let opcode = bytes.iter().position(|&b| !is_prefix(b)).unwrap_or(bytes.len());
    let (prefixes, rest) = bytes.split_at(opcode);
    let mut short = [0; 2 * INSTRUCTION_BYTES_MAX];
    let mut len = 0;
    let mut keep = |b: u8| {
        short[len] = b;
        len += 1;
    };
    for needed in [0x66, 0x67, 0xf0] {
        if prefixes.contains(&needed) {
            keep(needed);
        }
    }
    // Of REP and REPNE the last one counts. REX counts only directly before the opcode.
    if let Some(&repeat) = prefixes.iter().rfind(|&&b| b == 0xf2 || b == 0xf3) {
        keep(repeat);
    }
    if let Some(&rex) = prefixes.last().filter(|&&b| b & 0xf0 == 0x40) {
        keep(rex);
    }
    rest.iter().for_each(|&b| keep(b));
    !Decoder::new(64, &short, OPTIONS).decode().is_invalid()
}

/// Decodes `bytes`, which lie at `offset` of a page, and appends operations to `ops`. Returns the number of bytes
/// used.
///
/// Decodes at most `max` instructions. If the first one straddles the end of the bytes, appends nothing.
pub(crate) fn decode(bytes: &[u8], offset: u16, max: usize, ops: &mut Vec<Op>) -> (usize, End) {
    let mut decoder = Decoder::with_ip(64, bytes, u64::from(offset), OPTIONS);
    let mut count = 0;
    let mut used = 0;
    let mut behind_sti = false;
    while count < max && decoder.can_decode() {
        let at = decoder.position();
        let instruction = decoder.decode();
        let len = decoder.position() - at;
        let invalid = instruction.is_invalid();
        if invalid && decoder.last_error() == DecoderError::NoMoreBytes {
            return (used, End::Straddles);
        }
        let endless = invalid && len == INSTRUCTION_BYTES_MAX && only_too_long(&bytes[at..at + len]);
        let (mut op, kind) = if endless { (too_long(), Kind::Ends) } else { lower(&instruction) };
        op.off = offset + at as u16;
        op.len = len as u8;
        op.idx = count as u8;
        if behind_sti && let Some(sti) = ops.last_mut() {
            sti.run = sti_within;
        }
        ops.push(op);
        count += 1;
        used = at + len;
        behind_sti = instruction.mnemonic() == Mnemonic::Sti && max > 1;
        if kind == Kind::Ends && !behind_sti {
            break;
        }
    }
    (used, End::Complete)
}

//! Building a block: decode until control flow, the page's end, or a bound.

use super::lower::{lower, too_long};
use crate::op::{Kind, Op};
use iced_x86::{Decoder, DecoderError, DecoderOptions};

/// The most instructions in a block; `Op::idx` counts them.
pub(crate) const BLOCK_INSTRUCTIONS_MAX: usize = 64;
/// The longest instruction (SDM vol. 2A, 2.3.11).
pub(crate) const INSTRUCTION_BYTES_MAX: usize = 15;

/// TZCNT, LZCNT and MOVBE are outside the model: their encodings mean BSF, BSR and nothing.
pub(crate) const OPTIONS: u32 = DecoderOptions::NO_MPFX_0FBC
    | DecoderOptions::NO_MPFX_0FBD
    | DecoderOptions::NO_WBNOINVD;

/// How decoding ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// After control flow, at the bound, or exactly at the end of the bytes.
    Complete,
    /// An instruction continues beyond the bytes. It is not part of the block.
    Straddles,
}

/// Whether fifteen bytes that are no instruction are the beginning of a longer one, rather than a bad one of just that
/// length: the last byte is needed, and it is not the end even when prefixes that are not allowed are.
fn wants_more(bytes: &[u8]) -> bool {
    let mut decoder = Decoder::new(64, &bytes[..bytes.len() - 1], OPTIONS);
    let last_needed = decoder.decode().is_invalid() && decoder.last_error() == DecoderError::NoMoreBytes;
    let lenient = OPTIONS | DecoderOptions::NO_INVALID_CHECK;
    last_needed && Decoder::new(64, bytes, lenient).decode().is_invalid()
}

/// Decode `bytes`, which lie at `offset` of a page, into `ops`. Returns the bytes that were used.
///
/// At most `max` instructions. When the first one straddles, nothing is produced.
pub(crate) fn decode(bytes: &[u8], offset: u16, max: usize, ops: &mut Vec<Op>) -> (usize, End) {
    let mut decoder = Decoder::with_ip(64, bytes, u64::from(offset), OPTIONS);
    let mut count = 0;
    let mut used = 0;
    while count < max && decoder.can_decode() {
        let at = decoder.position();
        let instruction = decoder.decode();
        let len = decoder.position() - at;
        let invalid = instruction.is_invalid();
        if invalid && decoder.last_error() == DecoderError::NoMoreBytes {
            return (used, End::Straddles);
        }
        let endless = invalid && len == INSTRUCTION_BYTES_MAX && wants_more(&bytes[at..at + len]);
        let (mut op, kind) = if endless { (too_long(), Kind::Ends) } else { lower(&instruction) };
        op.off = offset + at as u16;
        op.len = len as u8;
        op.idx = count as u8;
        ops.push(op);
        count += 1;
        used = at + len;
        if kind == Kind::Ends {
            break;
        }
    }
    (used, End::Complete)
}

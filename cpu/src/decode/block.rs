//! Decoding of one block, i.e. the instructions up to a branch or other control flow, the end of the page, or the
//! maximum number of instructions.

use super::lower::lower;
use crate::exec::system::flag::sti_within;
use crate::exec::undefined::too_long;
use crate::model::CpuModel;
use crate::op::{Kind, Op};
use iced_x86::{Decoder, DecoderError, Mnemonic};

/// Maximum number of instructions in a block. `Op::idx` numbers them.
pub(crate) const BLOCK_INSTRUCTIONS_MAX: usize = 64;
/// Maximum length of an instruction in bytes (SDM vol. 2A, 2.3.11).
pub(crate) const INSTRUCTION_BYTES_MAX: usize = 15;

/// Reason why decoding ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Decoding reached control flow, the maximum number of instructions, or exactly the end of the bytes.
    Complete,
    /// The next instruction continues beyond the end of the bytes. It is not part of the block.
    Straddles,
}

/// True if fifteen invalid bytes would be a valid instruction without their redundant prefixes. The length is then the
/// only error, which raises #GP instead of #UD.
fn only_too_long(bytes: &[u8], model: CpuModel) -> bool {
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
    // If there are both REP and REPNE, the last one applies. A REX prefix applies only directly before the opcode.
    if let Some(&repeat) = prefixes.iter().rfind(|&&b| b == 0xf2 || b == 0xf3) {
        keep(repeat);
    }
    if let Some(&rex) = prefixes.last().filter(|&&b| b & 0xf0 == 0x40) {
        keep(rex);
    }
    rest.iter().for_each(|&b| keep(b));
    !Decoder::new(64, &short, model.decoder_options()).decode().is_invalid()
}

/// Decodes up to `max` instructions of a model from `bytes`, which lie at `offset` in a page, and appends operations to
/// `ops`. Returns the number of bytes decoded.
///
/// If the first instruction straddles the end of the bytes, nothing is appended.
pub(crate) fn decode(
    bytes: &[u8],
    offset: u16,
    max: usize,
    model: CpuModel,
    ops: &mut Vec<Op>,
) -> (usize, End) {
    let mut decoder = Decoder::with_ip(64, bytes, u64::from(offset), model.decoder_options());
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
        let endless = invalid && len == INSTRUCTION_BYTES_MAX && only_too_long(&bytes[at..at + len], model);
        let (mut op, kind) = if endless { (too_long(), Kind::Ends) } else { lower(&instruction, model) };
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

//! Traces: blocks that are translated together, because the guest usually executes one after the other.
//!
//! Blocks are short: three or four instructions in servers. Translated as one trace, several blocks share the check of
//! the instruction limit, and guest registers stay in host registers from one block to the next. All blocks of a trace
//! are on one page. A trace's calls, returns and jumps to other pages are in line. In all other code they call shared
//! routines, because code that runs seldom is faster if it is small.

use iced_x86::{Decoder, Instruction, Mnemonic};

use super::ends::{in_page, is_direct};
use crate::decode::cache::{Block, Cache};
use crate::decode::lower::lower;
use crate::op::{Kind, Op};

/// Maximum number of instructions of a trace. The signed byte that translated code subtracts from the number of
/// instructions left must hold it.
pub(super) const INSTRUCTIONS_MAX: usize = 96;

/// True if the block in slot `index` can be the first of a trace.
pub(super) fn can_begin(cache: &Cache, index: usize) -> bool {
    cache.block(index).is_whole()
}

/// True if a trace can go on with the block in slot `next` after the block that was in slot `last` and is at `place`.
pub(super) fn goes_on(cache: &Cache, (last, place): (usize, u64), next: usize) -> bool {
    let (last, next) = (cache.block(last), cache.block(next));
    // Another block may have taken the last block's slot.
    next.is_whole() && last.place() == place && leads_to(cache, last, next.place())
}

/// True if the block in slot `index` ends with a call, a return, or a jump that may lead to another page.
pub(super) fn ends_far(cache: &Cache, index: usize) -> bool {
    let Some((i, op)) = last_instruction(cache, cache.block(index)) else { return false };
    match i.mnemonic() {
        Mnemonic::Call | Mnemonic::Ret => true,
        Mnemonic::Jmp => !(is_direct(&i) && in_page(op.disp)),
        _ => false,
    }
}

/// Returns the last instruction of a block.
fn last_instruction(cache: &Cache, block: &Block) -> Option<(Instruction, Op)> {
    let op = *cache.ops(block).last()?;
    let bytes = &cache.bytes(block)[usize::from(block.len) - usize::from(op.len)..];
    let decoder = Decoder::with_ip(64, bytes, u64::from(op.off), cache.model().decoder_options());
    Some((decoder.into_iter().next()?, op))
}

/// True if a direct jump, or the mere end of block `from`, leads to `place`, which must be on the same page.
fn leads_to(cache: &Cache, from: &Block, place: u64) -> bool {
    let Some((i, op)) = last_instruction(cache, from) else { return false };
    let page = from.place() & !0xfff;
    let leads = |offset: i32| in_page(offset) && place == page | offset as u64;
    let after = i32::from(op.off) + i32::from(op.len);
    if lower(&i, cache.model()).1 == Kind::Straight {
        return leads(after);
    }
    if !is_direct(&i) {
        return false;
    }
    match i.mnemonic() {
        Mnemonic::Jmp => leads(op.disp),
        _ if i.is_jcc_short_or_near() => leads(op.disp) || leads(after),
        _ => false,
    }
}

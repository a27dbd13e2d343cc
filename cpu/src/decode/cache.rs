//! The cache of decoded blocks, direct-mapped by guest-physical address.
//!
//! A block is valid while its page's generation is the one that it was decoded at. When the generation moved on, its
//! bytes are compared: blocks are keyed by content, so they survive restores and writes next to them.
//!
//! **Invariant.** What executes equals what decoding afresh at each instruction would execute.

use super::block::{self, BLOCK_INSTRUCTIONS_MAX, End, INSTRUCTION_BYTES_MAX};
use crate::mem::Mem;
use crate::op::Op;

/// Which decoding of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// As many instructions as belong together.
    Block = 0,
    /// Exactly one.
    Single = 1,
}

/// A generation that no page has: they start at 1 and skip it.
const NEVER: u32 = 0;
/// Enough bytes for an instruction that begins on the first page.
const STRADDLING_BYTES: usize = 2 * INSTRUCTION_BYTES_MAX;
const EMPTY_KEY: u64 = u64::MAX;

/// A decoded block. Its operations and bytes lie in the cache's arenas.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    /// Guest-physical address, with the extent in bit 63.
    key: u64,
    generation: u32,
    ops_start: u32,
    bytes_start: u32,
    /// Instructions.
    pub count: u16,
    /// Bytes.
    pub len: u16,
    /// One instruction on two pages: its translation and bytes are checked each time.
    straddles: bool,
}

const EMPTY: Block =
    Block { key: EMPTY_KEY, generation: 0, ops_start: 0, bytes_start: 0, count: 0, len: 0, straddles: false };

/// Decoded code.
pub(crate) struct Cache {
    blocks: Vec<Block>,
    mask: usize,
    ops: Vec<Op>,
    bytes: Vec<u8>,
    ops_max: usize,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("blocks", &self.blocks.len()).field("ops", &self.ops.len()).finish()
    }
}

impl Cache {
    /// `entries` blocks: a power of two.
    pub(crate) fn new(entries: usize) -> Cache {
        assert!(entries.is_power_of_two());
        let ops_max = (entries * 16).max(4 * BLOCK_INSTRUCTIONS_MAX);
        Cache {
            blocks: vec![EMPTY; entries],
            mask: entries - 1,
            ops: Vec::with_capacity(ops_max),
            bytes: Vec::new(),
            ops_max,
        }
    }
    /// Forget everything.
    pub(crate) fn flush(&mut self) {
        self.blocks.fill(EMPTY);
        self.ops.clear();
        self.bytes.clear();
    }
    /// The operations of a block.
    #[inline(always)]
    pub(crate) fn ops(&self, b: &Block) -> &[Op] {
        &self.ops[b.ops_start as usize..b.ops_start as usize + b.count as usize]
    }
    /// The index where a block at `gpa` would be.
    #[inline(always)]
    fn slot(&self, key: u64) -> usize {
        ((key ^ (key >> 15) ^ (key >> 63)) as usize) & self.mask
    }
    /// The block at `gpa` if it is there and current. Blocks on two pages are never found here: they are
    /// stored with a generation that no page has.
    #[inline(always)]
    pub(crate) fn find(&self, mem: &Mem, gpa: u64, extent: Extent) -> Option<usize> {
        let key = gpa | (extent as u64) << 63;
        let slot = self.slot(key);
        let b = &self.blocks[slot];
        (b.key == key && b.generation == mem.code_generation(gpa)).then_some(slot)
    }
    /// A block by its index.
    #[inline(always)]
    pub(crate) fn block(&self, index: usize) -> &Block {
        &self.blocks[index]
    }
    /// Find or decode the block at `gpa`. `second` translates the following page and is called only if an instruction
    /// straddles; what it returns in error is passed on.
    pub(crate) fn find_or_decode<E>(
        &mut self,
        mem: &mut Mem,
        gpa: u64,
        extent: Extent,
        second: impl FnOnce(&mut Mem) -> Result<u64, E>,
    ) -> Result<usize, E> {
        let key = gpa | (extent as u64) << 63;
        let slot = self.slot(key);
        let old = self.blocks[slot];
        if old.key == key && !old.straddles && self.same_bytes(mem, &old, gpa) {
            mem.mark_code(gpa);
            self.blocks[slot].generation = mem.code_generation(gpa);
            return Ok(slot);
        }
        let straddled = old.key == key && old.straddles;
        if straddled {
            let page = second(mem)?;
            let both = self.straddling_bytes(mem, gpa, page);
            let start = old.bytes_start as usize;
            if self.bytes[start..start + both.len()] == both {
                mem.mark_code(gpa);
                mem.mark_code(page);
                return Ok(slot);
            }
            return Ok(self.decode_straddling(mem, gpa, key, page));
        }
        if self.ops.len() + BLOCK_INSTRUCTIONS_MAX > self.ops_max {
            self.flush();
        }
        let offset = (gpa & 0xfff) as u16;
        let (ops_start, bytes_start) = (self.ops.len() as u32, self.bytes.len() as u32);
        let max = if extent == Extent::Single { 1 } else { BLOCK_INSTRUCTIONS_MAX };
        let page_rest = mem.ram().slice(gpa, 4096 - u64::from(offset));
        let (used, end) = block::decode(page_rest, offset, max, &mut self.ops);
        if end == End::Straddles && used == 0 {
            let page = second(mem)?;
            return Ok(self.decode_straddling(mem, gpa, key, page));
        }
        self.bytes.extend_from_slice(&mem.ram().slice(gpa, 4096 - u64::from(offset))[..used]);
        mem.mark_code(gpa);
        self.blocks[slot] = Block {
            key,
            generation: mem.code_generation(gpa),
            ops_start,
            bytes_start,
            count: (self.ops.len() - ops_start as usize) as u16,
            len: used as u16,
            straddles: false,
        };
        Ok(slot)
    }
    /// The bytes from `gpa` to the end of its page and the first ones of the page at `second`.
    fn straddling_bytes(&self, mem: &Mem, gpa: u64, second: u64) -> [u8; STRADDLING_BYTES] {
        let mut both = [0u8; STRADDLING_BYTES];
        let first = (4096 - (gpa & 0xfff) as usize).min(INSTRUCTION_BYTES_MAX);
        both[..first].copy_from_slice(mem.ram().slice(gpa, first as u64));
        let rest = STRADDLING_BYTES - first;
        both[first..].copy_from_slice(mem.ram().slice(second, rest as u64));
        both
    }
    fn decode_straddling(&mut self, mem: &mut Mem, gpa: u64, key: u64, second: u64) -> usize {
        if self.ops.len() + BLOCK_INSTRUCTIONS_MAX > self.ops_max {
            self.flush();
        }
        let slot = self.slot(key);
        let both = self.straddling_bytes(mem, gpa, second);
        let (ops_start, bytes_start) = (self.ops.len() as u32, self.bytes.len() as u32);
        let (used, _) = block::decode(&both, (gpa & 0xfff) as u16, 1, &mut self.ops);
        self.bytes.extend_from_slice(&both);
        mem.mark_code(gpa);
        mem.mark_code(second);
        self.blocks[slot] = Block {
            key,
            generation: NEVER,
            ops_start,
            bytes_start,
            count: 1,
            len: used as u16,
            straddles: true,
        };
        slot
    }
    fn same_bytes(&self, mem: &Mem, b: &Block, gpa: u64) -> bool {
        let start = b.bytes_start as usize;
        self.bytes[start..start + usize::from(b.len)] == *mem.ram().slice(gpa, u64::from(b.len))
    }
}

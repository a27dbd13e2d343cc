//! The cache of decoded blocks. Its index is a hash of a block's offset in its page and of the page's *content number*
//! ([`super::contents`]). Each slot holds one block. A second slot with the same index holds the *victim*, the block
//! last evicted, and is searched only after a miss.
//!
//! A content number stands for the 4096 bytes of a page of code. The page keeps its number until something writes to
//! the page. A block found by the content number is therefore exactly the block that decoding would yield. The block
//! stays valid when the RAM of a moment (a snapshot) is restored. It serves all pages with the same bytes, also those
//! of other machines that share the cache. After a write to another part of the page, the block is copied rather than
//! decoded again.
//!
//! **Invariant.** The CPU executes the operations that it would execute if it decoded each instruction afresh.

use bytemuck::Zeroable;

use super::block::{self, BLOCK_INSTRUCTIONS_MAX, End, INSTRUCTION_BYTES_MAX};
use super::contents::Contents;
use crate::edges;
use crate::mem::Mem;
use crate::model::CpuModel;
use crate::op::Op;
use crate::zeroed::Zeroed;

/// Extent of a decoded block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All instructions up to the block's end.
    Block = 0,
    /// Exactly one instruction.
    Single = 1,
}

/// Number of bytes read from two pages to decode an instruction that starts on one and ends on the other.
const STRADDLING_BYTES: usize = 2 * INSTRUCTION_BYTES_MAX;
/// A flush clears the filled slots one by one if fewer than one slot in `FILLED_PART` is filled.
const FILLED_PART: usize = 8;
/// Key bit that every block has, so that a zeroed entry is no block. A new cache is therefore zeroed memory, which
/// takes no host memory until it is written.
const PRESENT: u64 = 1 << 62;
/// Key bit of an instruction on two pages. Before each use, the cache compares the current bytes on both pages with the
/// bytes from which the instruction was decoded.
const STRADDLES: u64 = 1 << 61;
/// Mask of the key bits that hold the block's [`place`].
const PLACE: u64 = STRADDLES - 1;

/// A decoded block. Its operations and bytes are in the cache's arenas, which hold those of all blocks one after the
/// other.
#[derive(Debug, Clone, Copy, Zeroable)]
pub(crate) struct Block {
    /// [`place`] of the block, with [`STRADDLES`], [`PRESENT`] and, in bit 63, the [`Extent`].
    key: u64,
    ops_start: u32,
    bytes_start: u32,
    /// Number of instructions.
    pub count: u16,
    /// Length in bytes.
    pub len: u16,
    /// Slot of the block that last followed this one, or at first this block's own slot. The CPU expects that block
    /// again, and prefetches it.
    next: u32,
    /// Number of times that the block was interpreted. It stays as it is once the block is translated. A write
    /// elsewhere on the page makes the cache copy the block; the copy starts with half of this number.
    pub heat: u32,
    /// Number of the block's translation, or 0.
    pub translated: u32,
}

impl Block {
    /// Returns the index of the block's first operation in the arena.
    pub(crate) fn ops_start(&self) -> u32 {
        self.ops_start
    }
    /// Returns the block's [`place`].
    pub(crate) fn place(&self) -> u64 {
        self.key & PLACE
    }
    /// True if the block has all instructions up to its end, all of them on one page.
    pub(crate) fn is_whole(&self) -> bool {
        self.key == Cache::key(self.place(), Extent::Block)
    }
    /// True if the block is an instruction on two pages.
    #[inline(always)]
    pub(crate) fn straddles(&self) -> bool {
        self.key & STRADDLES != 0
    }
}

/// Returns the *place* of `gpa`: the content number of its page in bits 12 and up, the offset in bits 0 to 11. A page
/// that is not known as code has content number 0, and no block has that number.
#[inline(always)]
pub(crate) fn place(mem: &Mem, gpa: u64) -> u64 {
    mem.content(gpa) << 12 | gpa & 0xfff
}

/// Slot and key of the block that the CPU expects next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guess {
    index: usize,
    key: u64,
}

/// Cache of decoded blocks.
pub(crate) struct Cache {
    blocks: Zeroed<Block>,
    /// For each slot, the block last evicted from it.
    victims: Zeroed<Block>,
    mask: usize,
    /// Model whose instructions the blocks have.
    model: CpuModel,
    ops: Vec<Op>,
    bytes: Vec<u8>,
    ops_max: usize,
    /// Slots filled since the last flush. `put` stops extending this list once clearing the whole table is cheaper.
    filled: Vec<u32>,
    /// Number of blocks decoded so far, for statistics.
    decoded: u64,
    flushes: u64,
    contents: Contents,
    /// For each slot, the locations of its block and of its victim, i.e. page digest and offset ([`crate::edges`]).
    /// `None` if edges are not recorded.
    named: Option<Zeroed<[u64; 2]>>,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("blocks", &self.blocks.len()).field("ops", &self.ops.len()).finish()
    }
}

impl Cache {
    /// Creates a cache of `entries` slots, a power of two, for code of a model. `named` is true if edges are recorded.
    pub(crate) fn new(entries: usize, named: bool, model: CpuModel) -> Cache {
        assert!(entries.is_power_of_two());
        let ops_max = (entries * 16).max(4 * BLOCK_INSTRUCTIONS_MAX);
        Cache {
            blocks: Zeroed::new(entries),
            victims: Zeroed::new(entries),
            mask: entries - 1,
            model,
            ops: Vec::with_capacity(ops_max),
            bytes: Vec::new(),
            ops_max,
            filled: Vec::new(),
            decoded: 0,
            flushes: 0,
            contents: Contents::default(),
            named: named.then(|| Zeroed::new(entries)),
        }
    }
    /// Returns the model whose instructions the blocks have.
    pub(crate) fn model(&self) -> CpuModel {
        self.model
    }
    /// Drops all blocks.
    pub(crate) fn flush(&mut self) {
        if self.filled.len() < self.blocks.len() / FILLED_PART {
            for slot in self.filled.drain(..) {
                self.blocks[slot as usize] = Block::zeroed();
                self.victims[slot as usize] = Block::zeroed();
            }
        } else {
            self.filled.clear();
            self.blocks.fill(Block::zeroed());
            self.victims.fill(Block::zeroed());
        }
        self.ops.clear();
        self.bytes.clear();
        self.flushes += 1;
    }
    /// Forgets the translations and execution counts of all blocks.
    pub(crate) fn forget_translations(&mut self) {
        for block in self.blocks.iter_mut().chain(self.victims.iter_mut()).filter(|block| block.key != 0) {
            (block.translated, block.heat) = (0, 0);
        }
    }
    /// Returns the number of blocks decoded so far.
    pub(crate) fn decoded(&self) -> u64 {
        self.decoded
    }
    /// Returns the key of a block at a place.
    #[inline(always)]
    fn key(place: u64, extent: Extent) -> u64 {
        place | PRESENT | (extent as u64) << 63
    }
    /// Returns the operations of a block.
    #[inline(always)]
    pub(crate) fn ops(&self, b: &Block) -> &[Op] {
        &self.ops[b.ops_start as usize..b.ops_start as usize + b.count as usize]
    }
    /// Returns the slot in which a block with this key belongs.
    #[inline(always)]
    fn slot(&self, key: u64) -> usize {
        ((key ^ (key >> 12) ^ (key >> 63)) as usize) & self.mask
    }
    /// Returns the slot of the block at `gpa` if the slot holds it. Finds neither victims nor blocks on two pages.
    #[inline(always)]
    pub(crate) fn find(&self, mem: &Mem, gpa: u64, extent: Extent) -> Option<usize> {
        let key = Cache::key(place(mem, gpa), extent);
        let slot = self.slot(key);
        (self.blocks[slot].key == key).then_some(slot)
    }
    /// Returns the slot and key of the block that last followed `b`. The CPU calls this before it executes `b`, so that
    /// the host loads the entry meanwhile.
    #[inline(always)]
    pub(crate) fn guess(&self, b: &Block) -> Guess {
        let index = b.next as usize & self.mask;
        Guess { index, key: self.blocks[index].key }
    }
    /// Returns the slot of the block at `gpa` if the guess is that block.
    #[inline(always)]
    pub(crate) fn guessed(&self, mem: &Mem, guess: Guess, gpa: u64) -> Option<usize> {
        let key = Cache::key(place(mem, gpa), Extent::Block);
        // Another block may have filled the slot since the guess was made.
        (guess.key == key && self.blocks[guess.index].key == key).then_some(guess.index)
    }
    /// Returns the slot `b.next`, which usually has the block that last followed `b`. Returns `None` if that slot has no
    /// block.
    pub(crate) fn successor(&self, b: &Block) -> Option<usize> {
        let slot = b.next as usize & self.mask;
        (self.blocks[slot].key != 0).then_some(slot)
    }
    /// Records that the block in slot `index` was executed after the block in slot `before`.
    #[inline(always)]
    pub(crate) fn follows(&mut self, before: usize, index: usize) {
        self.blocks[before].next = index as u32;
    }
    /// Returns `count` operations of the arena, from index `start`.
    pub(crate) fn ops_at(&self, start: u32, count: usize) -> &[Op] {
        &self.ops[start as usize..start as usize + count]
    }
    /// Returns the host address of the first operation in the arena.
    pub(crate) fn ops_pointer(&self) -> *const Op {
        self.ops.as_ptr()
    }
    /// Returns the bytes of a block.
    pub(crate) fn bytes(&self, b: &Block) -> &[u8] {
        &self.bytes[b.bytes_start as usize..b.bytes_start as usize + usize::from(b.len)]
    }
    /// Returns the block in a slot, to update its execution count or translation.
    pub(crate) fn block_mut(&mut self, index: usize) -> &mut Block {
        &mut self.blocks[index]
    }
    /// Returns the number of flushes so far.
    pub(crate) fn flushes(&self) -> u64 {
        self.flushes
    }
    /// Returns the location of the block in a slot, or 0 if edges are not recorded.
    #[inline(always)]
    pub(crate) fn named(&self, index: usize) -> u64 {
        self.named.as_ref().map_or(0, |named| named[index][0])
    }
    /// Returns the block in a slot.
    #[inline(always)]
    pub(crate) fn block(&self, index: usize) -> &Block {
        &self.blocks[index]
    }
    /// Finds or decodes the block at `gpa`. Calls `second` for the guest-physical address of the next page if the
    /// instruction continues there. Fails only if `second` fails.
    pub(crate) fn find_or_decode<E>(
        &mut self,
        mem: &mut Mem,
        gpa: u64,
        extent: Extent,
        second: impl FnOnce(&mut Mem) -> Result<u64, E>,
    ) -> Result<usize, E> {
        self.know(mem, gpa);
        let key = Cache::key(place(mem, gpa), extent);
        let slot = self.slot(key);
        if self.blocks[slot].key == key {
            return Ok(slot);
        }
        if self.victims[slot].key == key {
            std::mem::swap(&mut self.blocks[slot], &mut self.victims[slot]);
            if let Some(named) = &mut self.named {
                named[slot].reverse();
            }
            return Ok(slot);
        }
        // The CPU must not access the next page unless the instruction continues there: the page walk can fault, and
        // sets accessed bits.
        let straddling = key | STRADDLES;
        // A block on two pages would be in the same slot, because `slot` ignores the bit `STRADDLES`.
        let old = self.blocks[slot];
        if old.key == straddling {
            let page = second(mem)?;
            let both = self.straddling_bytes(mem, gpa, page);
            let start = old.bytes_start as usize;
            if self.bytes[start..start + both.len()] == both {
                self.know(mem, page);
                return Ok(slot);
            }
            return Ok(self.decode_straddling(mem, gpa, straddling, page));
        }
        if let Some(before) = self.before(mem, gpa, extent) {
            let (heat, next) = (before.heat / 2, slot as u32);
            self.put(mem, gpa, slot, Block { key, heat, next, translated: 0, ..before });
            return Ok(slot);
        }
        if self.ops.len() + BLOCK_INSTRUCTIONS_MAX > self.ops_max {
            self.flush();
        }
        self.decoded += 1;
        let offset = (gpa & 0xfff) as u16;
        let (ops_start, bytes_start) = (self.ops.len() as u32, self.bytes.len() as u32);
        let max = if extent == Extent::Single { 1 } else { BLOCK_INSTRUCTIONS_MAX };
        let page = mem.ram().page(gpa);
        let page_rest = &page[usize::from(offset)..];
        let (used, end) = block::decode(page_rest, offset, max, self.model, &mut self.ops);
        if end == End::Straddles && used == 0 {
            let page = second(mem)?;
            return Ok(self.decode_straddling(mem, gpa, straddling, page));
        }
        self.bytes.extend_from_slice(&page_rest[..used]);
        // Even if the cache was flushed above, the page still has its content number, so `key` is still right.
        self.put(
            mem,
            gpa,
            slot,
            Block {
                key,
                ops_start,
                bytes_start,
                count: (self.ops.len() - ops_start as usize) as u16,
                len: used as u16,
                next: slot as u32,
                heat: 0,
                translated: 0,
            },
        );
        Ok(slot)
    }
    /// Returns the bytes from `gpa` to the end of its page, followed by the first bytes of the page at `second`.
    fn straddling_bytes(&self, mem: &Mem, gpa: u64, second: u64) -> [u8; STRADDLING_BYTES] {
        let mut both = [0u8; STRADDLING_BYTES];
        let first = (4096 - (gpa & 0xfff) as usize).min(INSTRUCTION_BYTES_MAX);
        mem.ram().read(gpa, &mut both[..first]);
        mem.ram().read(second, &mut both[first..]);
        both
    }
    fn decode_straddling(&mut self, mem: &mut Mem, gpa: u64, key: u64, second: u64) -> usize {
        if self.ops.len() + BLOCK_INSTRUCTIONS_MAX > self.ops_max {
            self.flush();
        }
        self.decoded += 1;
        let slot = self.slot(key);
        let both = self.straddling_bytes(mem, gpa, second);
        let (ops_start, bytes_start) = (self.ops.len() as u32, self.bytes.len() as u32);
        let (used, _) = block::decode(&both, (gpa & 0xfff) as u16, 1, self.model, &mut self.ops);
        self.bytes.extend_from_slice(&both);
        self.know(mem, second);
        self.put(
            mem,
            gpa,
            slot,
            Block {
                key,
                ops_start,
                bytes_start,
                count: 1,
                len: used as u16,
                next: slot as u32,
                heat: 0,
                translated: 0,
            },
        );
        slot
    }
    /// Fills a slot. The slot's previous block becomes its victim.
    fn put(&mut self, mem: &Mem, gpa: u64, slot: usize, block: Block) {
        if self.filled.len() < self.blocks.len() / FILLED_PART {
            self.filled.push(slot as u32);
        }
        self.victims[slot] = std::mem::replace(&mut self.blocks[slot], block);
        if let Some(named) = &mut self.named {
            let number = mem.content(gpa);
            debug_assert_ne!(number, 0, "`know` gave the page its number");
            let name = self.contents.name(number, &mem.ram().page(gpa));
            named[slot] = [edges::word(name, gpa), named[slot][0]];
        }
    }
    /// Gives the page at `gpa` its content number, if it has none.
    fn know(&mut self, mem: &mut Mem, gpa: u64) {
        if mem.content(gpa) == 0 {
            let number = self.contents.number(&mem.ram().page(gpa));
            mem.mark_code(gpa, number);
        }
    }
    /// Returns the block that was at `gpa` before a write to the page, if the block's bytes are unchanged.
    fn before(&self, mem: &Mem, gpa: u64, extent: Extent) -> Option<Block> {
        let key = Cache::key(mem.content_before(gpa) << 12 | gpa & 0xfff, extent);
        let slot = self.slot(key);
        let block = [self.blocks[slot], self.victims[slot]].into_iter().find(|block| block.key == key)?;
        mem.ram().holds(gpa, self.bytes(&block)).then_some(block)
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;
    use crate::mem::Ram;

    #[test]
    fn rewritten_code_is_never_mistaken_for_the_old_code() {
        let mut memory = Zeroed::<u8>::new(1 << 16);
        // SAFETY: the mapping outlives `mem`, and nothing else writes to it while a method of `mem` runs.
        let ram = unsafe { Ram::new(memory.as_mut_ptr(), 1 << 16) };
        let mut mem = Mem::new(ram, 16);
        let mut cache = Cache::new(16, false, CpuModel::V2);
        let bytes_at = |cache: &mut Cache, mem: &mut Mem, gpa: u64| {
            let found = cache.find(mem, gpa, Extent::Block).unwrap_or_else(|| {
                let decoded = cache.find_or_decode(mem, gpa, Extent::Block, |_| Err(()));
                decoded.expect("no instruction straddles")
            });
            let start = cache.block(found).bytes_start as usize;
            [cache.bytes[start], cache.bytes[start + 1]]
        };
        const GPA: u64 = 0x5000;
        const TWIN: u64 = 0x7000;
        // Each round writes a one-byte instruction and HLT to two pages. The instruction is first NOP, then XCHG EAX,
        // ECX and so on. Eight rounds write eight instructions, and eight more rounds write the same instructions
        // again.
        for round in (0..8u8).chain(0..8) {
            for gpa in [GPA, TWIN] {
                memory[gpa as usize] = 0x90 + round;
                memory[gpa as usize + 1] = 0xf4;
                mem.written_outside(gpa, 2);
                // The second lookup finds the block in the cache.
                for _ in 0..2 {
                    assert_eq!(bytes_at(&mut cache, &mut mem, gpa), [0x90 + round, 0xf4]);
                }
            }
            assert_eq!(mem.content(GPA), mem.content(TWIN));
        }
        let decoded = cache.decoded();
        assert_eq!(decoded, 8);
        // After a write elsewhere on the page, the cache copies the block and does not decode it.
        memory[GPA as usize + 0x100] = 1;
        mem.written_outside(GPA, 1);
        assert_eq!(bytes_at(&mut cache, &mut mem, GPA), [0x97, 0xf4]);
        assert_ne!(mem.content(GPA), mem.content(TWIN));
        assert_eq!(cache.decoded(), decoded);
    }

    #[test]
    fn a_flush_drops_all_blocks_however_many_there_are() {
        let mut memory = Zeroed::<u8>::new(1 << 16);
        memory.fill(0xf4);
        // SAFETY: as in the test above.
        let ram = unsafe { Ram::new(memory.as_mut_ptr(), 1 << 16) };
        let mut mem = Mem::new(ram, 16);
        for filled in [1, 7, 8, 9, 64, 300] {
            let mut cache = Cache::new(64, false, CpuModel::V2);
            for gpa in 0..filled {
                cache
                    .find_or_decode(&mut mem, gpa, Extent::Block, |_| Err(()))
                    .expect("no instruction straddles");
            }
            assert!(cache.blocks.iter().any(|block| block.key != 0));
            cache.flush();
            assert!(cache.blocks.iter().chain(cache.victims.iter()).all(|block| block.key == 0), "{filled}");
        }
    }
}

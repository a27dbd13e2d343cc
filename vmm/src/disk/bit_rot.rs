//! Bit rot: flips bits of written blocks on the medium. A flip is immediate, and a power loss does not undo it.

use std::collections::BTreeMap;

use chacha20::rand_core::Rng;

use super::cache::{Before, Record};
use super::{BLOCK, Disk, draw};

/// Maximum number of bits that flip at a time.
pub const ROT_BITS_MAX: u32 = 1 << 16;

/// A bit that flipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlippedBit {
    /// Offset of the bit's byte on the disk.
    pub offset: u64,
    /// Number of the bit within the byte, 0-7.
    pub bit: u8,
}

impl Disk {
    /// Flips up to `bits` random bits (at most [`ROT_BITS_MAX`]) in random 4 KiB blocks that were ever written. A bit
    /// that is drawn twice flips once.
    ///
    /// The medium itself is damaged, so a bit flips in the current content of its sector and in each older content that
    /// a power loss may bring back. Later writes to the sector are stored correctly.
    pub fn rot(&mut self, bits: u32, rng: &mut impl Rng) -> Vec<FlippedBit> {
        let blocks: Vec<u64> = self.content.written_blocks().into_iter().collect();
        let mut masks: BTreeMap<u64, u8> = BTreeMap::new();
        if blocks.is_empty() {
            return Vec::new();
        }
        for _ in 0..bits.min(ROT_BITS_MAX) {
            let block = blocks[draw::below(rng, blocks.len() as u64) as usize];
            let bytes = (self.len() - block * BLOCK).min(BLOCK);
            let bit = draw::below(rng, 8 * bytes);
            *masks.entry(block * BLOCK + bit / 8).or_default() |= 1 << (bit % 8);
        }
        for (&offset, mask) in &masks {
            let mut byte = [0];
            self.content.read(offset, &mut byte);
            self.content.write(offset, &[byte[0] ^ mask]);
        }
        let size = self.sector.bytes();
        self.cache.map(|record| flipped(record, size, &masks));
        let bits = |(&offset, &mask): (&u64, &u8)| {
            (0..8).filter(move |bit| mask >> bit & 1 == 1).map(move |bit| FlippedBit { offset, bit })
        };
        masks.iter().flat_map(bits).collect()
    }
}

/// Flips bits in a copy of `record`, and returns the copy. The record holds the content that some sectors had before a
/// write, because a power loss may undo the write. `masks` maps the offset of a byte on the disk to the bits to flip.
/// Bytes outside of the record's sectors are ignored.
fn flipped(record: &Record, size: u64, masks: &BTreeMap<u64, u8>) -> Record {
    let (start, len) = (record.sector * size, u64::from(record.sectors) * size);
    let mut range = masks.range(start..start + len).peekable();
    if range.peek().is_none() {
        return record.clone();
    }
    let mut content = record.before.part(0, len as usize).to_vec();
    for (&offset, mask) in range {
        content[(offset - start) as usize] ^= mask;
    }
    Record { before: Before::of(&content), ..record.clone() }
}

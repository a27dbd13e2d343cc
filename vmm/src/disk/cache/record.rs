//! One entry of the log: what a few sectors had before a write.

use std::sync::Arc;

use everett_snapshot::{PageHash, PageRef};

use crate::disk::{BLOCK, Block, ZEROES};

/// What some sectors had, which all lie in one block.
///
/// **Invariant.** Zeroes are always `Zero`, so that equal contents have one hash.
#[derive(Debug, Clone)]
pub(in crate::disk) enum Before {
    /// Zeroes.
    Zero,
    /// A whole block, which a moment has, too.
    Page(PageRef),
    /// These bytes.
    Bytes(Arc<[u8]>),
}

impl Before {
    /// A copy of at most a block.
    pub(in crate::disk) fn of(content: &[u8]) -> Before {
        if is_zero(content) { Before::Zero } else { Before::Bytes(content.into()) }
    }
    /// A whole block, shared.
    pub(in crate::disk) fn of_shared(content: &Arc<Block>) -> Before {
        if is_zero(&content[..]) { Before::Zero } else { Before::Bytes(Arc::<Block>::clone(content)) }
    }
    /// `len` bytes of it, from `at` on. There are none beyond its end.
    pub(in crate::disk) fn part(&self, at: usize, len: usize) -> &[u8] {
        let content = match self {
            Before::Zero => &ZEROES[..],
            Before::Page(page) => &page.bytes()[..],
            Before::Bytes(bytes) => bytes,
        };
        content.get(at..at + len).unwrap_or(&[])
    }
}

/// Whether there is nothing but zeroes in at most a block.
fn is_zero(content: &[u8]) -> bool {
    *content == ZEROES[..content.len().min(BLOCK as usize)]
}

/// What a run of sectors had before a write.
#[derive(Debug, Clone)]
pub(in crate::disk) struct Record {
    /// Which write: requests are numbered in the order of completion.
    pub(in crate::disk) write: u64,
    /// The first sector, in logical sectors.
    pub(in crate::disk) sector: u64,
    /// How many: they lie in one block.
    pub(in crate::disk) sectors: u8,
    /// What was there.
    pub(in crate::disk) before: Before,
}

impl Record {
    /// A hash of all of it, for digests.
    pub(super) fn hash(&self) -> PageHash {
        let content = match &self.before {
            Before::Zero => [0; 32],
            Before::Page(page) => page.hash().0,
            Before::Bytes(bytes) => *blake3::hash(bytes).as_bytes(),
        };
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.write.to_le_bytes()).update(&self.sector.to_le_bytes());
        hasher.update(&[self.sectors]).update(&content);
        PageHash(*hasher.finalize().as_bytes())
    }
}

//! A record of the write cache's log: the content of a few sectors before a write.

use std::sync::Arc;

use everett_snapshot::{PageHash, PageRef};

use crate::disk::{BLOCK, Block, ZEROES};

/// Content of sectors, all in one block.
///
/// **Invariant.** Content of only zeroes is always `Zero`, so that equal contents have equal hashes.
#[derive(Debug, Clone)]
pub(in crate::disk) enum Before {
    /// Only zeroes.
    Zero,
    /// A whole block, which is shared with a moment.
    Page(PageRef),
    /// Any other bytes.
    Bytes(Arc<[u8]>),
}

impl Before {
    /// Copies `content`, which is at most one block.
    pub(in crate::disk) fn of(content: &[u8]) -> Before {
        if is_zero(content) { Before::Zero } else { Before::Bytes(content.into()) }
    }
    /// Shares a whole block without a copy.
    pub(in crate::disk) fn of_shared(content: &Arc<Block>) -> Before {
        if is_zero(&content[..]) { Before::Zero } else { Before::Bytes(Arc::<Block>::clone(content)) }
    }
    /// Returns `len` bytes from `at` on. Returns no bytes if the range exceeds the content.
    pub(in crate::disk) fn part(&self, at: usize, len: usize) -> &[u8] {
        let content = match self {
            Before::Zero => &ZEROES[..],
            Before::Page(page) => &page.bytes()[..],
            Before::Bytes(bytes) => bytes,
        };
        content.get(at..at + len).unwrap_or(&[])
    }
}

/// True if `content`, which is at most one block, is only zeroes.
fn is_zero(content: &[u8]) -> bool {
    *content == ZEROES[..content.len().min(BLOCK as usize)]
}

/// Content of consecutive sectors before a write.
#[derive(Debug, Clone)]
pub(in crate::disk) struct Record {
    /// Number of the write. Writes are numbered in the order of completion.
    pub(in crate::disk) write: u64,
    /// Number of the first logical sector.
    pub(in crate::disk) sector: u64,
    /// Number of sectors. All of them lie in one block.
    pub(in crate::disk) sectors: u8,
    /// Content before the write.
    pub(in crate::disk) before: Before,
}

impl Record {
    /// Returns the hash of the whole record.
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

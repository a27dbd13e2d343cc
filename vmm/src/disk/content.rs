//! Content of a disk as reads return it: the written blocks, and for all others the base (the disk's initial content).
//!
//! The blocks of the last moment are a tree of immutable pages. Moments share the parts of it that no write changed.
//! Blocks written since the last moment belong to the disk alone until [`Content::moment`] adds them to the tree. The
//! digest uses the blocks' hashes, which are updated only when needed.
//!
//! **Invariant.** The set of written blocks depends only on the writes, never on when moments were taken. A block that
//! was overwritten with zeroes still counts as written, because it keeps its space on a thin-provisioned device.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use everett_snapshot::{Entry, PageHash, Pool, Tree};

use super::base::Base;
use super::cache::Before;
use super::{BLOCK, Block, ZEROES};
use crate::digest::LeafSum;
use crate::digest::leaves::Leaves;

/// Base and written blocks of a disk.
#[derive(Clone)]
pub(super) struct Content {
    base: Base,
    base_digest: Option<[u8; 32]>,
    bytes: u64,
    /// Blocks written before the last moment.
    stored: Tree,
    /// Blocks written since the last moment. `None` is a block of zeroes.
    recent: BTreeMap<u64, Option<Arc<Block>>>,
    /// Blocks written since the last update of the hashes.
    dirty: BTreeSet<u64>,
    leaves: Leaves,
}

static HASH_OF_ZEROES: LazyLock<PageHash> = LazyLock::new(|| PageHash::of(ZEROES));

impl Content {
    pub(super) fn new(base: Base, bytes: u64) -> Content {
        let base_digest = matches!(base, Base::Zero).then(|| base.digest(bytes));
        Content {
            base,
            base_digest,
            bytes,
            stored: Tree::default(),
            recent: BTreeMap::new(),
            dirty: BTreeSet::new(),
            leaves: Leaves::default(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads at an offset. Bytes beyond the end of the disk are zero.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) {
        for_blocks(offset, buf.len() as u64, |block, at, range| {
            let part = &mut buf[range];
            match self.written(block) {
                Some(content) => part.copy_from_slice(&content[at..at + part.len()]),
                None => self.base.read(block * BLOCK + at as u64, part),
            }
        });
    }

    /// Writes at an offset. Bytes beyond the end of the disk are dropped.
    pub(super) fn write(&mut self, offset: u64, content: &[u8]) {
        let len = (content.len() as u64).min(self.bytes.saturating_sub(offset));
        for_blocks(offset, len, |block, at, range| self.write_block(block, at, &content[range]));
    }

    /// Writes to a part of one block. The part must fit into the block.
    pub(super) fn write_block(&mut self, block: u64, at: usize, part: &[u8]) {
        match <&Block>::try_from(part) {
            Ok(whole) => {
                self.dirty.insert(block);
                self.recent.insert(block, Some(Arc::new(*whole)));
            }
            Err(_) => self.block_mut(block)[at..at + part.len()].copy_from_slice(part),
        }
    }

    /// Zeroes a part of one block. A whole block of zeroes uses no memory.
    pub(super) fn zero_block(&mut self, block: u64, at: usize, len: usize) {
        if len < BLOCK as usize {
            self.block_mut(block)[at..at + len].fill(0);
            return;
        }
        self.dirty.insert(block);
        self.recent.insert(block, None);
    }

    /// Returns the content of a block if it was ever written.
    pub(super) fn written(&self, block: u64) -> Option<&Block> {
        match self.recent.get(&block) {
            Some(Some(content)) => Some(content),
            Some(None) => Some(ZEROES),
            None => match self.stored.get(block)? {
                Entry::Zero => Some(ZEROES),
                Entry::Page(page) => Some(page.bytes()),
            },
        }
    }

    /// True if a thin-provisioned device has space for a block, i.e. if the block was written or the base has content
    /// there.
    pub(super) fn allocated(&self, block: u64) -> bool {
        self.written(block).is_some() || self.base.has_content(block * BLOCK, BLOCK)
    }

    /// Returns the numbers of all blocks that were ever written, in ascending order.
    pub(super) fn written_blocks(&self) -> BTreeSet<u64> {
        self.stored.iter().map(|(block, _)| block).chain(self.recent.keys().copied()).collect()
    }

    /// Returns the current content of a part of a block. Later writes do not change the returned content. If the part
    /// is a whole block that was ever written, its content is shared and not copied.
    pub(super) fn before(&self, block: u64, at: usize, len: usize) -> Before {
        if len == BLOCK as usize {
            match (self.recent.get(&block), self.stored.get(block)) {
                (Some(Some(content)), _) => return Before::of_shared(content),
                (Some(None), _) | (None, Some(Entry::Zero)) => return Before::Zero,
                (None, Some(Entry::Page(page))) => return Before::Page(page.clone()),
                (None, None) => {}
            }
        }
        let mut buf = [0; BLOCK as usize];
        let buf = &mut buf[..len];
        self.read(block * BLOCK + at as u64, buf);
        Before::of(buf)
    }

    /// Hashes the blocks that were written since the last call.
    pub(super) fn update_hashes(&mut self) {
        for block in std::mem::take(&mut self.dirty) {
            let hash_now = match self.recent.get(&block) {
                Some(Some(content)) => Some(PageHash::of(content)),
                Some(None) => Some(*HASH_OF_ZEROES),
                None => self.stored.get(block).map(hash),
            };
            self.leaves.set(block, hash_now, || self.stored.get(block).map(hash));
        }
    }

    /// Returns the sum of the hashes of all written blocks.
    pub(super) fn sum(&mut self) -> LeafSum {
        self.update_hashes();
        self.leaves.sum()
    }

    /// Returns the written blocks for a moment, and the sum of their hashes. Stores recent blocks in `pool`, which
    /// stores equal blocks once.
    pub(super) fn moment(&mut self, pool: &Pool) -> (Tree, LeafSum) {
        self.update_hashes();
        for (block, content) in std::mem::take(&mut self.recent) {
            let page = content.and_then(|content| match self.leaves.recent(block) {
                Some(Some(hash)) => pool.intern_hashed(hash, &content),
                _ => pool.intern(&content),
            });
            self.stored.set(block, page.map_or(Entry::Zero, Entry::Page));
        }
        let sum = self.leaves.sum();
        self.leaves.moment(sum);
        (self.stored.clone(), sum)
    }

    /// Restores the content to a moment of the same disk.
    pub(super) fn restore(&mut self, stored: &Tree, sum: LeafSum) {
        self.stored = stored.clone();
        self.recent.clear();
        self.dirty.clear();
        self.leaves.moment(sum);
    }

    /// Returns the ranges of the disk that may have content from the base, sorted by their start.
    pub(super) fn base_ranges(&self) -> Vec<Range<u64>> {
        self.base.ranges(self.bytes)
    }

    /// Returns the digest of the base, or `None` if the digest is not known yet.
    pub(super) fn known_base_digest(&self) -> Option<[u8; 32]> {
        self.base_digest
    }
    /// Sets the digest of the base. `None` means that [`Content::base_digest`] computes it when it is first needed.
    pub(super) fn base_digest_is(&mut self, digest: Option<[u8; 32]>) {
        self.base_digest = digest;
    }
    /// Returns the digest of the base. Reads the base if the digest is not known yet.
    pub(super) fn base_digest(&mut self) -> [u8; 32] {
        *self.base_digest.get_or_insert_with(|| self.base.digest(self.bytes))
    }

    fn block_mut(&mut self, block: u64) -> &mut Block {
        self.dirty.insert(block);
        if !matches!(self.recent.get(&block), Some(Some(_))) {
            let mut content = *ZEROES;
            match self.written(block) {
                Some(written) => content = *written,
                None => self.base.read(block * BLOCK, &mut content),
            }
            self.recent.insert(block, Some(Arc::new(content)));
        }
        // The block is in `recent` now. If a clone of this `Content` or a result of `before` shares the block,
        // `make_mut` copies it.
        let content = self.recent.entry(block).or_default().get_or_insert_with(|| Arc::new(*ZEROES));
        Arc::make_mut(content)
    }
}

/// Returns the hash of a block in a moment. A block of zeroes has a hash, too.
pub(super) fn hash(entry: &Entry) -> PageHash {
    match entry {
        Entry::Zero => *HASH_OF_ZEROES,
        Entry::Page(page) => page.hash(),
    }
}

/// Calls `f(block, offset in the block, range in the buffer)` for each block that a range of the disk touches.
pub(super) fn for_blocks(offset: u64, len: u64, mut f: impl FnMut(u64, usize, Range<usize>)) {
    let mut done = 0;
    while done < len {
        let at = offset + done;
        let take = (BLOCK - at % BLOCK).min(len - done);
        f(at / BLOCK, (at % BLOCK) as usize, done as usize..(done + take) as usize);
        done += take;
    }
}

//! What reads see: the base under the blocks that were written since.
//!
//! Blocks of the last moment are a persistent tree of immutable pages, which moments share; those written since are the
//! disk's own until [`Content::moment`] adds them to the tree. Their hashes are kept up for the digest.
//!
//! **Invariant.** Which blocks count as written depends on what was written only, never on when moments were taken: a
//! block of zeroes that was written stays written, since on a thin device it has room.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use everett_snapshot::{Entry, PageHash, Pool, Tree};

use super::base::Base;
use super::cache::Before;
use super::{BLOCK, Block, ZEROES};
use crate::digest::LeafSum;
use crate::digest::leaves::Leaves;

/// Base and written blocks.
#[derive(Clone)]
pub(super) struct Content {
    base: Base,
    base_digest: Option<[u8; 32]>,
    bytes: u64,
    /// Written up to the last moment.
    stored: Tree,
    /// Written since. `None`: zeroes.
    recent: BTreeMap<u64, Option<Arc<Block>>>,
    /// Written since the hashes were last kept up.
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

    /// Read. What lies beyond the end is zero.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) {
        for_blocks(offset, buf.len() as u64, |block, at, range| {
            let part = &mut buf[range];
            match self.written(block) {
                Some(content) => part.copy_from_slice(&content[at..at + part.len()]),
                None => self.base.read(block * BLOCK + at as u64, part),
            }
        });
    }

    /// Write. What lies beyond the end is dropped.
    pub(super) fn write(&mut self, offset: u64, content: &[u8]) {
        let len = (content.len() as u64).min(self.bytes.saturating_sub(offset));
        for_blocks(offset, len, |block, at, range| self.write_block(block, at, &content[range]));
    }

    /// Write to one block, in which it must fit.
    pub(super) fn write_block(&mut self, block: u64, at: usize, part: &[u8]) {
        match <&Block>::try_from(part) {
            Ok(whole) => {
                self.dirty.insert(block);
                self.recent.insert(block, Some(Arc::new(*whole)));
            }
            Err(_) => self.block_mut(block)[at..at + part.len()].copy_from_slice(part),
        }
    }

    /// Zero a part of one block. A whole block of zeroes costs no memory.
    pub(super) fn zero_block(&mut self, block: u64, at: usize, len: usize) {
        if len < BLOCK as usize {
            self.block_mut(block)[at..at + len].fill(0);
            return;
        }
        self.dirty.insert(block);
        self.recent.insert(block, None);
    }

    /// A block that was written at some time.
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

    /// Whether a thin device has room for a block: it was written, or the base has something there.
    pub(super) fn allocated(&self, block: u64) -> bool {
        self.written(block).is_some() || self.base.has_content(block * BLOCK, BLOCK)
    }

    /// The numbers of blocks that were written at some time, ascending.
    pub(super) fn written_blocks(&self) -> BTreeSet<u64> {
        self.stored.iter().map(|(block, _)| block).chain(self.recent.keys().copied()).collect()
    }

    /// What a part of a block has, to be kept while the block changes. Whole blocks are shared, parts are copied.
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

    /// Keep up the hashes of blocks.
    pub(super) fn update_hashes(&mut self) {
        for block in std::mem::take(&mut self.dirty) {
            let hash_now = match self.recent.get(&block) {
                Some(Some(content)) => Some(PageHash::of(content)),
                Some(None) => Some(*HASH_OF_ZEROES),
                None => self.stored.get(block).map(hash),
            };
            self.leaves.set(block, hash_now, self.stored.get(block).map(hash));
        }
    }

    /// The sum of the hashes of all written blocks.
    pub(super) fn sum(&mut self) -> LeafSum {
        self.update_hashes();
        self.leaves.sum()
    }

    /// The written blocks as they are now, for a moment, and the sum of their hashes.
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

    /// Go to where a moment of this disk was.
    pub(super) fn restore(&mut self, stored: &Tree, sum: LeafSum) {
        self.stored = stored.clone();
        self.recent.clear();
        self.dirty.clear();
        self.leaves.moment(sum);
    }

    /// The digest of the base if it is known without reading the base.
    pub(super) fn known_base_digest(&self) -> Option<[u8; 32]> {
        self.base_digest
    }
    /// The digest of the base is this one.
    pub(super) fn base_digest_is(&mut self, digest: Option<[u8; 32]>) {
        self.base_digest = digest;
    }
    /// The digest of the base, computed the first time.
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
        // Present by the lines above; a block that somebody shares is copied here.
        let content = self.recent.entry(block).or_default().get_or_insert_with(|| Arc::new(*ZEROES));
        Arc::make_mut(content)
    }
}

/// The hash of a written block of a moment.
pub(super) fn hash(entry: &Entry) -> PageHash {
    match entry {
        Entry::Zero => *HASH_OF_ZEROES,
        Entry::Page(page) => page.hash(),
    }
}

/// Call `f(block, offset in the block, range in the buffer)` for each block that a range of the disk touches.
pub(super) fn for_blocks(offset: u64, len: u64, mut f: impl FnMut(u64, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < len {
        let at = offset + done;
        let take = (BLOCK - at % BLOCK).min(len - done);
        f(at / BLOCK, (at % BLOCK) as usize, done as usize..(done + take) as usize);
        done += take;
    }
}

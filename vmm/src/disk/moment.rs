//! A disk at a stop: blocks, cache and faults, and what disk it is a moment of.
//!
//! Taking one costs what was written since the last; the cache is shared, not copied. In a file the blocks are a tree of
//! pages, and all else is one string of bytes.

use std::fmt;

use everett_snapshot::{Pool, Tree};
use serde::{Deserialize, Serialize};

use super::cache::{Cache, Head, LogError};
use super::content;
use super::faults::{DiskFaultError, Faults};
use super::{BLOCK, DISK_BYTES_MAX, Disk, SectorSize};
use crate::digest::LeafSum;

/// What a disk is, whatever is on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Make {
    pub(crate) bytes: u64,
    pub(crate) sector: SectorSize,
    /// blake3 of the base, where it was known: not of a large image that nobody hashed.
    pub(crate) base: Option<[u8; 32]>,
}

/// Where a disk was.
#[derive(Debug, Clone)]
pub struct DiskMoment {
    /// The blocks that were written: what differs from its base.
    pub blocks: Tree,
    /// The sum of their hashes.
    pub sum: LeafSum,
    pub(crate) make: Make,
    cache: Cache,
    faults: Faults,
}

/// A moment of a disk as a file has it.
#[derive(Debug, Clone)]
pub struct DiskParts {
    /// The blocks.
    pub blocks: Tree,
    /// All else.
    pub state: Vec<u8>,
}

/// The head of [`DiskParts::state`]; the contents of the cache follow.
#[derive(Serialize, Deserialize)]
struct Stored {
    make: Make,
    faults: Faults,
    cache: Head,
}

/// Why something stored is no moment of a disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskMomentError {
    /// The bytes do not say anything.
    #[error("its state cannot be read: {0}")]
    Encoding(String),
    /// There is no such disk.
    #[error("{bytes} bytes in sectors of {sector}: no disk has that")]
    Make {
        /// Its size.
        bytes: u64,
        /// Its sectors' size.
        sector: u64,
    },
    /// A block lies beyond the end.
    #[error("block {block} of a disk of {blocks} blocks")]
    Block {
        /// Which.
        block: u64,
        /// How many there are.
        blocks: u64,
    },
    /// The cache.
    #[error("its cache: {0}")]
    Cache(#[from] LogError),
    /// The faults.
    #[error("its faults: {0}")]
    Faults(#[from] DiskFaultError),
}

impl DiskMoment {
    /// Bytes of versions in the cache, which no flush has covered.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.bytes()
    }

    /// Whether both have the same cache, as the same object.
    #[cfg(test)]
    pub(super) fn shares_cache_with(&self, other: &DiskMoment) -> bool {
        self.cache.shares(&other.cache)
    }

    /// What a file has of it.
    #[must_use]
    pub fn to_parts(&self) -> DiskParts {
        let (cache, contents) = self.cache.to_parts(self.make.sector);
        let stored = Stored { make: self.make.clone(), faults: self.faults.clone(), cache };
        // Plain data: there is nothing in it that cannot be written.
        let mut state = postcard::to_stdvec(&stored).unwrap_or_default();
        state.extend(contents);
        DiskParts { blocks: self.blocks.clone(), state }
    }

    /// A moment from a file, which is not trusted.
    ///
    /// # Errors
    /// When it is none of any disk.
    pub fn from_parts(parts: &DiskParts) -> Result<DiskMoment, DiskMomentError> {
        let encoding = |error: postcard::Error| DiskMomentError::Encoding(error.to_string());
        let (stored, contents): (Stored, _) = postcard::take_from_bytes(&parts.state).map_err(encoding)?;
        let Stored { make, faults, cache } = stored;
        let (bytes, sector) = (make.bytes, make.sector.bytes());
        if bytes == 0 || bytes > DISK_BYTES_MAX || !bytes.is_multiple_of(sector) {
            return Err(DiskMomentError::Make { bytes, sector });
        }
        let (blocks, tree) = (bytes.div_ceil(BLOCK), &parts.blocks);
        if let Some(block) = tree.last().filter(|&block| block >= blocks) {
            return Err(DiskMomentError::Block { block, blocks });
        }
        faults.check()?;
        let cache = Cache::from_parts(&cache, contents, make.sector, bytes)?;
        let sum = LeafSum::of(tree.iter().map(|(block, entry)| (block, content::hash(entry))));
        Ok(DiskMoment { blocks: tree.clone(), sum, make, cache, faults })
    }
}

impl Disk {
    /// What disk this is.
    pub(crate) fn make(&self) -> Make {
        Make { bytes: self.len(), sector: self.sector, base: self.content.known_base_digest() }
    }

    /// A moment of it. Blocks that were written since the last one are added to `pool`.
    pub(crate) fn moment(&mut self, pool: &Pool) -> DiskMoment {
        let (blocks, sum) = self.content.moment(pool);
        let (cache, faults) = (self.cache.clone(), self.faults.clone());
        DiskMoment { blocks, sum, make: self.make(), cache, faults }
    }

    /// Go to where a moment of a disk of this make was.
    pub(crate) fn restore(&mut self, then: &DiskMoment) {
        self.content.restore(&then.blocks, then.sum);
        self.cache.clone_from(&then.cache);
        self.faults.clone_from(&then.faults);
    }
}

impl Make {
    /// What tells it from a disk of another make, in both: bases are compared where both are known.
    pub(crate) fn difference(&self, other: &Make) -> Option<(&'static str, String, String)> {
        let differ =
            |what, a: &dyn fmt::Display, b: &dyn fmt::Display| Some((what, a.to_string(), b.to_string()));
        if self.bytes != other.bytes {
            return differ("bytes of a disk", &self.bytes, &other.bytes);
        }
        if self.sector != other.sector {
            return differ("bytes of a disk's sector", &self.sector.bytes(), &other.sector.bytes());
        }
        match (self.base, other.base) {
            (Some(a), Some(b)) if a != b => {
                differ("what a disk is based on", &crate::digest::Digest(a), &crate::digest::Digest(b))
            }
            _ => None,
        }
    }
}

//! Moments of a disk: blocks, cache and faults, and the properties that identify the disk.
//!
//! Taking a moment costs time in proportion to the blocks written since the last moment. The moment shares the disk's
//! cache and does not copy it. In a file, the blocks are a tree of pages, and everything else is one byte string.

use std::fmt;

use everett_snapshot::{Pool, Tree};
use serde::{Deserialize, Serialize};

use super::cache::{Cache, Head, LogError};
use super::content;
use super::faults::{DiskFaultError, Faults};
use super::{BLOCK, DISK_BYTES_MAX, Disk, SectorSize};
use crate::digest::LeafSum;

/// Properties of a disk that writes and faults do not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Make {
    pub(crate) bytes: u64,
    pub(crate) sector: SectorSize,
    /// BLAKE3 digest of the base (the disk's content before any write), if it is known. Taking a moment does not
    /// compute the digest, because hashing a large image is slow.
    pub(crate) base: Option<[u8; 32]>,
}

/// Snapshot of a disk, taken while its machine stands still.
#[derive(Debug, Clone)]
pub struct DiskMoment {
    /// Written blocks, i.e. the differences from the base.
    pub blocks: Tree,
    /// Sum of the blocks' hashes.
    pub sum: LeafSum,
    pub(crate) make: Make,
    cache: Cache,
    faults: Faults,
}

/// Moment of a disk in the form that a file stores.
#[derive(Debug, Clone)]
pub struct DiskParts {
    /// Written blocks.
    pub blocks: Tree,
    /// Encoded properties, faults and cache.
    pub state: Vec<u8>,
}

/// Head of [`DiskParts::state`]. The contents of the cache follow it.
#[derive(Serialize, Deserialize)]
struct Stored {
    make: Make,
    faults: Faults,
    cache: Head,
}

/// Defect of a stored moment of a disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskMomentError {
    /// The bytes cannot be decoded.
    #[error("its state cannot be read: {0}")]
    Encoding(String),
    /// The size is not a valid size of a disk.
    #[error("a disk cannot have {bytes} bytes in sectors of {sector} bytes")]
    Make {
        /// Size of the disk in bytes.
        bytes: u64,
        /// Size of the disk's sectors in bytes.
        sector: u64,
    },
    /// A block lies beyond the end of the disk.
    #[error("block {block} is beyond the end of a disk of {blocks} blocks")]
    Block {
        /// Number of the block.
        block: u64,
        /// Number of blocks that the disk has.
        blocks: u64,
    },
    /// The stored cache is invalid.
    #[error("its cache")]
    Cache(#[from] LogError),
    /// The stored faults are invalid.
    #[error("its faults")]
    Faults(#[from] DiskFaultError),
}

impl DiskMoment {
    /// Returns the number of bytes in the write cache. The cache keeps the content that sectors had before each write
    /// that is not durable yet.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.bytes()
    }

    /// True if both moments share the same cache.
    #[cfg(test)]
    pub(super) fn shares_cache_with(&self, other: &DiskMoment) -> bool {
        self.cache.shares(&other.cache)
    }

    /// Returns the parts that a file stores.
    #[must_use]
    pub fn to_parts(&self) -> DiskParts {
        let (cache, contents) = self.cache.to_parts(self.make.sector);
        let stored = Stored { make: self.make.clone(), faults: self.faults.clone(), cache };
        // The state is plain data, which postcard can always encode.
        let mut state = postcard::to_stdvec(&stored).unwrap_or_default();
        state.extend(contents);
        DiskParts { blocks: self.blocks.clone(), state }
    }

    /// Decodes a moment from a file, which may be hostile.
    ///
    /// # Errors
    /// Returns an error if the parts are not a valid moment of a disk.
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
    pub(crate) fn make(&self) -> Make {
        Make { bytes: self.len(), sector: self.sector, base: self.content.known_base_digest() }
    }

    /// Takes a moment of the disk. Stores the blocks that were written since the last moment in `pool`, which stores
    /// equal blocks once.
    pub(crate) fn moment(&mut self, pool: &Pool) -> DiskMoment {
        let (blocks, sum) = self.content.moment(pool);
        let (cache, faults) = (self.cache.clone(), self.faults.clone());
        DiskMoment { blocks, sum, make: self.make(), cache, faults }
    }

    /// Restores the disk to a moment of a disk with the same properties.
    pub(crate) fn restore(&mut self, then: &DiskMoment) {
        self.content.restore(&then.blocks, then.sum);
        self.cache.clone_from(&then.cache);
        self.faults.clone_from(&then.faults);
    }
}

impl Make {
    /// Returns the name and both values of the first property that differs. Compares the bases only if both digests are
    /// known.
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
                differ("base of a disk", &crate::digest::Digest(a), &crate::digest::Digest(b))
            }
            _ => None,
        }
    }
}

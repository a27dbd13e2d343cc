//! Disks: their contents, the writes that a power loss could lose, and their faults.
//!
//! The base of a disk is immutable, and all machines that use it share it. Each disk has its own copy of the 4 KiB
//! blocks that were written to it. A guest's writes are volatile until a flush covers them. Reads return the newest
//! version of each sector. After a power loss, a sector holds one of its versions since the last covering flush. A disk
//! is a value that outlives its machine. Cloning it costs time in proportion to the blocks written since the last
//! moment.
//!
//! - `base`: the immutable content below the written blocks; `map`: maps its files; `content`: the content that reads
//!   return
//! - `write`: changes that requests make; `cache`: the old versions of sectors whose latest write is not durable yet
//! - `loss`: the effect of a power loss on these versions and on requests in flight
//! - `faults`: errors, latency, no space; `bit_rot`: flips bits; `draw`: random numbers and probabilities
//! - `image`: the content block by block, without blocks of zeroes
//! - `moment`: takes, stores and restores moments of a disk
//!
//! Elsewhere: requests, their bounds and their latency (`virtio::blk`); the fault plans that begin and end faults
//! (`session`).
//!
//! **Invariants.**
//! - Logical sectors are atomic, except in a power loss with [`PowerLossOptions::tear_sectors`].
//! - A flush makes durable exactly the writes that had completed when the flush was submitted (virtio 1.2, 5.2.6).
//!   Otherwise, a guest's write becomes durable only when the cache is full, or at once if the guest's driver does not
//!   use flushes.
//! - Random numbers are drawn only for an active fault, for bit rot, at a power loss and at a reset of the machine.

mod base;
mod bit_rot;
mod cache;
mod content;
mod draw;
mod faults;
mod image;
mod loss;
mod map;
mod moment;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use everett_fault::{DiskFault, Requests};
use everett_streams::Streams;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use base::{Base, MappedPart};
use cache::Cache;
use content::Content;
use faults::Faults;
use map::MappedFile;

pub use bit_rot::{FlippedBit, ROT_BITS_MAX};
pub use cache::{CACHE_BYTES_MAX, LogError};
pub use faults::{DiskFaultError, FAULTS_MAX};
pub use loss::{Aborted, LANDING_BYTES_MAX, LossMode, PowerLoss, PowerLossOptions};
pub use moment::{DiskMoment, DiskMomentError, DiskParts};
pub(crate) use write::Change;

/// Size of a block in bytes, the unit of copy-on-write.
pub const BLOCK: u64 = 4096;
/// Size of a virtio sector in bytes, the unit of offsets in requests (virtio 1.2, 5.2.6). Drives write sectors of
/// [`SectorSize`] atomically.
pub const SECTOR: u64 = 512;
/// Maximum size of a disk, in bytes: 16 TiB.
pub const DISK_BYTES_MAX: u64 = 1 << 44;

/// Error of opening or configuring a disk.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The file cannot be opened or mapped.
    #[error("cannot open disk image {}", path.display())]
    Open {
        /// Path of the file.
        path: PathBuf,
        /// The host's error.
        #[source]
        source: std::io::Error,
    },
    /// The size is zero, above the maximum, or not a multiple of [`SECTOR`].
    #[error(
        "disk {name}: {bytes} bytes: a disk has whole sectors of {SECTOR} bytes, at least one and at most 16 TiB"
    )]
    Size {
        /// Name of the disk.
        name: String,
        /// Size in bytes.
        bytes: u64,
    },
    /// The size is not a multiple of the logical sector size.
    #[error("a disk of {bytes} bytes is not a whole number of sectors of {sector} bytes")]
    Sectors {
        /// Size of the disk in bytes.
        bytes: u64,
        /// Size of a logical sector in bytes.
        sector: u64,
    },
    /// The serial number is too long or not printable ASCII.
    #[error("disk serial \"{0}\": at most 20 bytes of printable ASCII")]
    Serial(String),
    /// Disks were given to replace a machine's disks, but differ from them in a property that must not change.
    #[error("{what}: {given} given, {machine} in the machine")]
    Other {
        /// Property that differs.
        what: &'static str,
        /// Value for the given disks.
        given: String,
        /// Value for the machine's disks.
        machine: String,
    },
}

/// Size of a logical sector. A drive writes a logical sector as a whole or not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SectorSize {
    /// 512 bytes.
    #[default]
    Bytes512,
    /// 4096 bytes. Requests must be aligned to this size.
    Bytes4096,
}

impl SectorSize {
    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            SectorSize::Bytes512 => SECTOR,
            SectorSize::Bytes4096 => BLOCK,
        }
    }
}

/// Part of a file that becomes a part of a disk's base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// Path of the file.
    pub path: PathBuf,
    /// Offset of the part in the file.
    pub offset: u64,
    /// Length in bytes, a multiple of [`SECTOR`]. Bytes beyond the end of the file are zero.
    pub bytes: u64,
}

/// A disk: content, volatile write cache and faults.
#[derive(Clone)]
pub struct Disk {
    content: Content,
    sector: SectorSize,
    cache: Cache,
    faults: Faults,
}

type Block = [u8; BLOCK as usize];
const ZEROES: &Block = &[0; BLOCK as usize];

impl Disk {
    /// Creates a disk of zeroes.
    ///
    /// # Errors
    /// Returns an error if the size is not a valid size of a disk.
    pub fn zeroed(bytes: u64) -> Result<Disk, DiskError> {
        Disk::new(Base::Zero, bytes, "zeroed")
    }

    /// Creates a disk whose base is `content`.
    ///
    /// # Errors
    /// Returns an error if the content's length is not a valid size of a disk.
    pub fn from_bytes(content: Arc<[u8]>) -> Result<Disk, DiskError> {
        let bytes = content.len() as u64;
        Disk::new(Base::Bytes(content), bytes, "in memory")
    }

    /// Creates a disk whose base is a file, rounded up to whole sectors. The file is mapped, never written, and must
    /// not change while the disk exists. `digest` is the file's BLAKE3 digest. If it is `None`, the disk computes it
    /// when it first needs it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be mapped or its size is not a valid size of a disk.
    pub fn open(path: &Path, digest: Option<[u8; 32]>) -> Result<Disk, DiskError> {
        let file =
            MappedFile::open(path).map_err(|source| DiskError::Open { path: path.to_owned(), source })?;
        let bytes = (file.bytes().len() as u64).next_multiple_of(SECTOR);
        let mut disk = Disk::new(Base::File(Arc::new(file)), bytes, &path.display().to_string())?;
        disk.content.base_digest_is(digest);
        Ok(disk)
    }

    /// Creates a disk whose base consists of parts of files, one after the other. The files are mapped as in
    /// [`Disk::open`], and several disks can share them. `digest` identifies the content.
    ///
    /// # Errors
    /// Returns an error if a file cannot be mapped, if the length of a part is not a multiple of [`SECTOR`], or if the
    /// sum of the lengths is not a valid size of a disk.
    pub fn open_parts(parts: &[FilePart], digest: [u8; 32]) -> Result<Disk, DiskError> {
        let mut files: BTreeMap<&Path, Arc<MappedFile>> = BTreeMap::new();
        let mut mapped = Vec::new();
        let mut at: u64 = 0;
        for FilePart { path, offset, bytes } in parts {
            let name = || path.display().to_string();
            if !bytes.is_multiple_of(SECTOR) || *bytes > DISK_BYTES_MAX {
                return Err(DiskError::Size { name: name(), bytes: *bytes });
            }
            let file = match files.get(path.as_path()) {
                Some(file) => Arc::clone(file),
                None => {
                    let failed = |source| DiskError::Open { path: path.clone(), source };
                    let file = Arc::new(MappedFile::open(path).map_err(failed)?);
                    files.insert(path, Arc::clone(&file));
                    file
                }
            };
            let from = usize::try_from(*offset).unwrap_or(usize::MAX);
            mapped.push(MappedPart { file, from, at, bytes: *bytes });
            at = at.saturating_add(*bytes);
        }
        let name = parts.first().map_or_else(String::new, |part| part.path.display().to_string());
        let mut disk = Disk::new(Base::Parts(mapped.into()), at, &name)?;
        disk.content.base_digest_is(Some(digest));
        Ok(disk)
    }

    fn new(base: Base, bytes: u64, name: &str) -> Result<Disk, DiskError> {
        if bytes == 0 || !bytes.is_multiple_of(SECTOR) || bytes > DISK_BYTES_MAX {
            return Err(DiskError::Size { name: name.into(), bytes });
        }
        let (content, sector) = (Content::new(base, bytes), SectorSize::default());
        Ok(Disk { content, sector, cache: Cache::default(), faults: Faults::default() })
    }

    /// Returns the disk with logical sectors of this size. All writes that are not durable yet become durable.
    ///
    /// # Errors
    /// Returns an error if the disk's size is not a multiple of this sector size.
    pub fn with_sectors(mut self, sector: SectorSize) -> Result<Disk, DiskError> {
        let bytes = self.len();
        if !bytes.is_multiple_of(sector.bytes()) {
            return Err(DiskError::Sectors { bytes, sector: sector.bytes() });
        }
        self.cache.clear();
        Ok(Disk { sector, ..self })
    }

    /// Returns the size in bytes.
    pub fn len(&self) -> u64 {
        self.content.bytes()
    }
    /// Returns false, because a disk has at least one sector.
    pub fn is_empty(&self) -> bool {
        false
    }
    /// Returns the size of the disk's logical sectors.
    pub fn sector_size(&self) -> SectorSize {
        self.sector
    }
    /// True if the disk contains `len` bytes at `offset`.
    pub fn contains(&self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len())
    }

    /// Reads the newest versions of sectors. Bytes beyond the end are zero.
    pub fn read(&self, offset: u64, buf: &mut [u8]) {
        self.content.read(offset, buf);
    }

    /// Writes on behalf of Everett. This write and all earlier writes become durable. Bytes beyond the end are dropped.
    pub fn write(&mut self, offset: u64, content: &[u8]) {
        self.cache.clear();
        self.content.write(offset, content);
    }

    /// Returns the numbers of all blocks that were ever written, in ascending order.
    pub fn written_blocks(&self) -> BTreeSet<u64> {
        self.content.written_blocks()
    }

    /// Returns the size of the old versions in the cache, in bytes. Old versions are the contents of sectors before
    /// writes that no flush has covered.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.bytes()
    }

    /// Begins a fault with ID `id`. Replaces an active fault with the same ID.
    ///
    /// # Errors
    /// Returns an error if the fault's parameters are invalid, or if the disk would have more than [`FAULTS_MAX`]
    /// faults.
    pub fn apply(&mut self, id: u64, fault: DiskFault) -> Result<(), DiskFaultError> {
        self.faults.apply(id, fault)
    }
    /// Ends the fault with this ID. Returns false if there is none.
    pub fn heal(&mut self, id: u64) -> bool {
        self.faults.heal(id)
    }
    /// Ends all faults. Their effects on the content remain.
    pub fn heal_all(&mut self) {
        self.faults.heal_all();
    }
    /// Returns the active faults by ID.
    pub fn faults(&self) -> &BTreeMap<u64, DiskFault> {
        self.faults.active()
    }
    /// True if a fault makes this request fail. `kind` is the request's category.
    pub(crate) fn fails(&self, kind: Requests, disk: u8, streams: &mut Streams) -> bool {
        self.faults.fails(kind, disk, streams)
    }
    /// Returns the additional latency of a request due to faults, in nanoseconds.
    pub(crate) fn extra_ns(&self, disk: u8, streams: &mut Streams) -> u64 {
        self.faults.extra_ns(disk, streams)
    }

    /// Returns the BLAKE3 digest of the base.
    pub fn base_digest(&mut self) -> [u8; 32] {
        self.content.base_digest()
    }

    /// Returns the digest of the whole disk. Costs time in proportion to the changes since the last call.
    pub(crate) fn digest(&mut self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.base_digest()).update(&self.content.sum().digest().0);
        hasher.update(&self.sector.bytes().to_le_bytes()).update(&self.cache.digest().0);
        // The faults are plain data, which postcard can always encode.
        hasher.update(&postcard::to_stdvec(&self.faults).unwrap_or_default());
        Digest(*hasher.finalize().as_bytes())
    }

    /// Returns a text about the unflushed writes, for people who compare two runs.
    pub(crate) fn cache_text(&mut self) -> String {
        let digest = self.cache.digest();
        format!("{:?}, digest {digest}", self.cache)
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (written, cached) = (self.written_blocks().len(), self.cached_bytes());
        write!(f, "Disk({} bytes, {written} blocks written, {cached} bytes in the cache)", self.len())
    }
}

#[cfg(test)]
pub(crate) mod tests;

//! Disks: what is on them, what of it would survive a loss of power, and what is wrong with them.
//!
//! The base of a disk is immutable and shared by every machine that has it; blocks of 4 KiB that were written belong to the
//! disk. Writes of a guest are volatile until a flush covers them: reads see the newest version of each sector, and what a
//! sector holds after a loss of power is one of its versions since the last covering flush. A disk is a value: it outlives
//! its machine, and a clone costs what was written since the last moment.
//!
//! - `base`, `map`: what lies under the written blocks; `content`: what reads see
//! - `write`: what requests write; `cache`: the versions that are not durable yet
//! - `loss`: what becomes of them when power goes, and of requests in flight
//! - `faults`: errors, latency, no room; `rot`: bits that flip; `draw`: draws
//! - `moment`: a disk at a stop
//!
//! Not here: requests, their bounds and their latency (`virtio::blk`), when a fault begins and ends.
//!
//! **Invariants.**
//! - Logical sectors are atomic unless tearing is asked for.
//! - A flush makes durable exactly the writes that had completed when it was submitted (virtio 1.2, 5.2.6), and more only
//!   where the cache has no room.
//! - Nothing is drawn but for a fault that is there, for bit rot, and when power is lost or a machine reset.

mod base;
mod cache;
mod content;
mod draw;
mod faults;
mod loss;
mod map;
mod moment;
mod rot;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use everett_fault::Requests;
use everett_streams::Streams;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use base::Base;
use cache::Cache;
use content::Content;
use faults::Faults;
use map::MappedFile;

pub use cache::{CACHE_BYTES_MAX, LogError};
pub use faults::{DiskFault, DiskFaultError, FAULTS_MAX};
pub use loss::{Aborted, LANDING_BYTES_MAX, LossMode, PowerLoss, PowerLossOptions};
pub use moment::{DiskMoment, DiskMomentError, DiskParts};
pub use rot::{FlippedBit, ROT_BITS_MAX};
pub(crate) use write::Change;

/// Bytes of a block, the unit of copy-on-write.
pub const BLOCK: u64 = 4096;
/// Bytes of a sector, the unit in which requests count (virtio 1.2, 5.2.6). See [`SectorSize`] for what is atomic.
pub const SECTOR: u64 = 512;
/// The largest disk: 16 TiB.
pub const DISK_BYTES_MAX: u64 = 1 << 44;

/// Why a disk could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The file cannot be opened or mapped.
    #[error("cannot open disk image {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The size is not one that a disk can have.
    #[error(
        "disk {name}: {bytes} bytes: a disk has whole sectors of {SECTOR} bytes, at least one and at most 16 TiB"
    )]
    Size {
        /// Which disk.
        name: String,
        /// What it would have.
        bytes: u64,
    },
    /// The size is not one of whole logical sectors.
    #[error("a disk of {bytes} bytes has no whole sectors of {sector} bytes")]
    Sectors {
        /// What it has.
        bytes: u64,
        /// Bytes of a logical sector.
        sector: u64,
    },
    /// The serial does not fit.
    #[error("disk serial \"{0}\": at most 20 bytes of printable ASCII")]
    Serial(String),
    /// A machine gets disks that are not those that it was made with.
    #[error("{what}: {given} given, {machine} in the machine")]
    Other {
        /// What differs.
        what: &'static str,
        /// In the disks that were given.
        given: String,
        /// In the machine.
        machine: String,
    },
}

/// Bytes of a logical sector: what a drive writes as a whole or not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SectorSize {
    /// 512 bytes.
    #[default]
    Bytes512,
    /// 4096 bytes. Requests must be aligned to them.
    Bytes4096,
}

impl SectorSize {
    /// In bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            SectorSize::Bytes512 => SECTOR,
            SectorSize::Bytes4096 => BLOCK,
        }
    }
}

/// One disk.
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
    /// An empty disk: zeroes.
    ///
    /// # Errors
    /// When it has no such size.
    pub fn zeroed(bytes: u64) -> Result<Disk, DiskError> {
        Disk::new(Base::Zero, bytes, "zeroed")
    }

    /// A disk with this content.
    ///
    /// # Errors
    /// When its length is no size of a disk.
    pub fn from_bytes(content: Arc<[u8]>) -> Result<Disk, DiskError> {
        let bytes = content.len() as u64;
        Disk::new(Base::Bytes(content), bytes, "in memory")
    }

    /// A disk whose base is a file, rounded up to whole sectors. The file is mapped, never written, and must not change
    /// while the disk lives; `digest` is its blake3, computed when it is wanted and not given.
    ///
    /// # Errors
    /// When it cannot be mapped or has no size of a disk.
    pub fn open(path: &Path, digest: Option<[u8; 32]>) -> Result<Disk, DiskError> {
        let file =
            MappedFile::open(path).map_err(|source| DiskError::Open { path: path.to_owned(), source })?;
        let bytes = (file.bytes().len() as u64).next_multiple_of(SECTOR);
        let mut disk = Disk::new(Base::File(Arc::new(file)), bytes, &path.display().to_string())?;
        disk.content.base_digest_is(digest);
        Ok(disk)
    }

    fn new(base: Base, bytes: u64, name: &str) -> Result<Disk, DiskError> {
        if bytes == 0 || !bytes.is_multiple_of(SECTOR) || bytes > DISK_BYTES_MAX {
            return Err(DiskError::Size { name: name.into(), bytes });
        }
        let (content, sector) = (Content::new(base, bytes), SectorSize::default());
        Ok(Disk { content, sector, cache: Cache::default(), faults: Faults::default() })
    }

    /// The same disk with logical sectors of this size. What is in its cache becomes durable.
    ///
    /// # Errors
    /// When it does not have whole ones.
    pub fn with_sectors(mut self, sector: SectorSize) -> Result<Disk, DiskError> {
        let bytes = self.len();
        if !bytes.is_multiple_of(sector.bytes()) {
            return Err(DiskError::Sectors { bytes, sector: sector.bytes() });
        }
        self.cache.clear();
        Ok(Disk { sector, ..self })
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.content.bytes()
    }
    /// Always false: there is at least a sector.
    pub fn is_empty(&self) -> bool {
        false
    }
    /// The size of its logical sectors.
    pub fn sector_size(&self) -> SectorSize {
        self.sector
    }
    /// Whether `len` bytes at `offset` are on the disk.
    pub fn contains(&self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len())
    }

    /// Read the newest versions. What lies beyond the end is zero.
    pub fn read(&self, offset: u64, buf: &mut [u8]) {
        self.content.read(offset, buf);
    }

    /// Write by the host's hand, durably, and all that was written before with it. What lies beyond the end is dropped.
    pub fn write(&mut self, offset: u64, content: &[u8]) {
        self.cache.clear();
        self.content.write(offset, content);
    }

    /// The numbers of blocks that were written at some time, ascending.
    pub fn written_blocks(&self) -> BTreeSet<u64> {
        self.content.written_blocks()
    }

    /// Bytes of versions in the cache: of what sectors held before writes that no flush has covered.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.bytes()
    }

    /// Do something to the disk, under a name. Whatever had that name ends.
    ///
    /// # Errors
    /// It is no fault, or there are too many.
    pub fn apply(&mut self, id: u64, fault: DiskFault) -> Result<(), DiskFaultError> {
        self.faults.apply(id, fault)
    }
    /// End the fault with this name. Returns whether there was one.
    pub fn heal(&mut self, id: u64) -> bool {
        self.faults.heal(id)
    }
    /// End all faults. What they did stays done.
    pub fn heal_all(&mut self) {
        self.faults.heal_all();
    }
    /// The faults that it has.
    pub fn faults(&self) -> &BTreeMap<u64, DiskFault> {
        self.faults.active()
    }
    /// Whether a request of this kind fails.
    pub(crate) fn fails(&self, kind: Requests, disk: u8, streams: &mut Streams) -> bool {
        self.faults.fails(kind, disk, streams)
    }
    /// How much longer a request takes, in nanoseconds.
    pub(crate) fn extra_ns(&self, disk: u8, streams: &mut Streams) -> u64 {
        self.faults.extra_ns(disk, streams)
    }

    /// blake3 of the base.
    pub fn base_digest(&mut self) -> [u8; 32] {
        self.content.base_digest()
    }

    /// The digest of all of it. Costs what changed since the last.
    pub(crate) fn digest(&mut self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.base_digest()).update(&self.content.sum().digest().0);
        hasher.update(&self.sector.bytes().to_le_bytes()).update(&self.cache.digest().0);
        // Plain data: there is nothing in it that cannot be written.
        hasher.update(&postcard::to_stdvec(&self.faults).unwrap_or_default());
        Digest(*hasher.finalize().as_bytes())
    }

    /// What is unflushed, for people who compare two runs.
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

//! What is on a disk: an immutable base (a mapped file, bytes, or zeroes) under blocks that were written since.
//!
//! The base is shared by every machine that has it; only written 4 KiB blocks belong to a machine. Those of the last moment
//! are a persistent tree of immutable pages, which moments share; those written since are the disk's own until
//! [`Disk::moment`] adds them to the tree. There is no volatile cache here: a write that completed is on the disk.

mod map;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use everett_snapshot::{Entry, PageHash, Pool, Tree};
use map::MappedFile;

use crate::digest::LeafSum;

/// Bytes of a block, the unit of copy-on-write.
pub const BLOCK: u64 = 4096;
/// Bytes of a sector, the unit of requests.
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
    /// The serial does not fit.
    #[error("disk serial \"{0}\": at most 20 bytes of printable ASCII")]
    Serial(String),
}

/// What lies under the written blocks.
#[derive(Debug, Clone)]
enum Base {
    Zero,
    Bytes(Arc<[u8]>),
    File(Arc<MappedFile>),
}

/// The contents of one disk.
#[derive(Clone)]
pub struct Disk {
    base: Base,
    base_digest: Option<[u8; 32]>,
    bytes: u64,
    /// Written up to the last moment.
    stored: Tree,
    /// Written since. `None`: zeroes.
    recent: BTreeMap<u64, Option<Arc<Block>>>,
    /// Written since the last [`Disk::take_dirty_blocks`].
    dirty: BTreeSet<u64>,
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
        disk.base_digest = digest;
        Ok(disk)
    }

    fn new(base: Base, bytes: u64, name: &str) -> Result<Disk, DiskError> {
        if bytes == 0 || !bytes.is_multiple_of(SECTOR) || bytes > DISK_BYTES_MAX {
            return Err(DiskError::Size { name: name.into(), bytes });
        }
        let (stored, recent, dirty) = (Tree::default(), BTreeMap::new(), BTreeSet::new());
        Ok(Disk { base, base_digest: None, bytes, stored, recent, dirty })
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.bytes
    }
    /// Always false: there is at least a sector.
    pub fn is_empty(&self) -> bool {
        false
    }
    /// Whether `len` bytes at `offset` are on the disk.
    pub fn contains(&self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.bytes)
    }

    /// Read. What lies beyond the end is zero.
    pub fn read(&self, offset: u64, buf: &mut [u8]) {
        for_blocks(offset, buf.len(), |block, at, range| {
            let part = &mut buf[range];
            match self.written_block(block) {
                Some(content) => part.copy_from_slice(&content[at..at + part.len()]),
                None => self.read_base(block * BLOCK + at as u64, part),
            }
        });
    }

    /// Write. What lies beyond the end is dropped.
    pub fn write(&mut self, offset: u64, content: &[u8]) {
        let len = content.len().min(self.bytes.saturating_sub(offset) as usize);
        for_blocks(offset, len, |block, at, range| {
            let part = &content[range];
            self.block_mut(block)[at..at + part.len()].copy_from_slice(part);
        });
    }

    /// Write zeroes. A whole block of them costs no memory.
    pub fn write_zeroes(&mut self, offset: u64, len: u64) {
        let len = len.min(self.bytes.saturating_sub(offset));
        for_blocks(offset, len as usize, |block, at, range| {
            if range.len() < BLOCK as usize {
                self.block_mut(block)[at..at + range.len()].fill(0);
                return;
            }
            self.dirty.insert(block);
            self.recent.insert(block, None);
        });
    }

    /// The blocks written since the last call, ascending.
    pub fn take_dirty_blocks(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.dirty)
    }
    /// A block that was written at some time.
    pub fn written_block(&self, block: u64) -> Option<&Block> {
        match self.recent.get(&block) {
            Some(Some(content)) => Some(content),
            Some(None) => Some(ZEROES),
            None => match self.stored.get(block)? {
                Entry::Zero => Some(ZEROES),
                Entry::Page(page) => Some(page.bytes()),
            },
        }
    }
    /// The numbers of blocks that were written at some time, ascending.
    pub fn written_blocks(&self) -> BTreeSet<u64> {
        self.stored.iter().map(|(block, _)| block).chain(self.recent.keys().copied()).collect()
    }
    /// The hash of what the last moment has of a block that was written before it.
    pub(crate) fn stored_hash(&self, block: u64) -> Option<PageHash> {
        self.stored.get(block).map(hash)
    }
    /// The hash of a block as it is, if it was written. Zeroes over a base of zeroes are nothing; over another base they
    /// have a hash as any content has.
    pub(crate) fn block_hash(&self, block: u64) -> Option<PageHash> {
        let content = self.written_block(block)?;
        (content != ZEROES || !matches!(self.base, Base::Zero)).then(|| PageHash::of(content))
    }

    /// The sum of the blocks of the last moment.
    pub(crate) fn stored_sum(&self) -> LeafSum {
        sum(&self.stored)
    }
    /// Whoever takes dirty blocks next has seen none that was written since the last moment.
    pub(crate) fn recent_is_dirty(&mut self) {
        self.dirty.extend(self.recent.keys());
    }

    /// The written blocks as they are now, for a moment. `hash` knows the hashes of those that were written since the last.
    pub(crate) fn moment(&mut self, pool: &Pool, hash: impl Fn(u64) -> Option<Option<PageHash>>) -> Tree {
        for (block, content) in std::mem::take(&mut self.recent) {
            let page = content.filter(|content| **content != *ZEROES).and_then(|content| match hash(block) {
                Some(Some(hash)) => pool.intern_hashed(hash, &content),
                _ => pool.intern(&content),
            });
            match page {
                Some(page) => self.stored.set(block, Entry::Page(page)),
                None if matches!(self.base, Base::Zero) => self.stored.remove(block),
                None => self.stored.set(block, Entry::Zero),
            }
        }
        self.stored.clone()
    }
    /// Go to where a moment of this disk was.
    pub(crate) fn restore(&mut self, stored: &Tree) {
        self.stored = stored.clone();
        self.recent.clear();
        self.dirty.clear();
    }

    /// blake3 of the base.
    pub fn base_digest(&mut self) -> [u8; 32] {
        *self.base_digest.get_or_insert_with(|| match &self.base {
            Base::Zero => *blake3::hash(&self.bytes.to_le_bytes()).as_bytes(),
            Base::Bytes(content) => *blake3::hash(content).as_bytes(),
            Base::File(file) => *blake3::hash(file.bytes()).as_bytes(),
        })
    }

    fn read_base(&self, offset: u64, buf: &mut [u8]) {
        let content: &[u8] = match &self.base {
            Base::Zero => &[],
            Base::Bytes(content) => content,
            Base::File(file) => file.bytes(),
        };
        let start = (offset as usize).min(content.len());
        let len = buf.len().min(content.len() - start);
        buf[..len].copy_from_slice(&content[start..start + len]);
        buf[len..].fill(0);
    }

    fn block_mut(&mut self, block: u64) -> &mut Block {
        self.dirty.insert(block);
        if !matches!(self.recent.get(&block), Some(Some(_))) {
            let mut content = *ZEROES;
            match self.written_block(block) {
                Some(written) => content = *written,
                None => self.read_base(block * BLOCK, &mut content),
            }
            self.recent.insert(block, Some(Arc::new(content)));
        }
        // Present by the lines above; a block that a clone shares is copied here.
        let content = self.recent.entry(block).or_default().get_or_insert_with(|| Arc::new(*ZEROES));
        Arc::make_mut(content)
    }
}

/// The sum of the blocks of a moment.
pub(crate) fn sum(blocks: &Tree) -> LeafSum {
    LeafSum::of(blocks.iter().map(|(block, entry)| (block, hash(entry))))
}

/// The hash of a written block of a moment.
fn hash(entry: &Entry) -> PageHash {
    match entry {
        Entry::Zero => PageHash::of(ZEROES),
        Entry::Page(page) => page.hash(),
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Disk({} bytes, {} blocks written)", self.bytes, self.written_blocks().len())
    }
}

/// Call `f(block, offset in the block, range in the buffer)` for each block that a range of the disk touches.
fn for_blocks(offset: u64, len: usize, mut f: impl FnMut(u64, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < len {
        let at = offset + done as u64;
        let in_block = (at % BLOCK) as usize;
        let take = (BLOCK as usize - in_block).min(len - done);
        f(at / BLOCK, in_block, done..done + take);
        done += take;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any reads and writes equal those on a plain array, for each kind of base, and dirty blocks are what was written.
        #[test]
        fn equals_an_array(
            base in 0u8..3,
            steps in proptest::collection::vec((0usize..40_000, 0usize..9_000, any::<u8>(), 0u8..3), 1..40),
        ) {
            const LEN: usize = 9 * 4096 + 512;
            let content: Vec<u8> = (0..LEN).map(|i| i as u8).collect();
            let folder = tempfile::tempdir().unwrap();
            let (mut disk, mut oracle) = match base {
                0 => (Disk::zeroed(LEN as u64).unwrap(), vec![0; LEN]),
                1 => (Disk::from_bytes(content.clone().into()).unwrap(), content),
                _ => {
                    let path = folder.path().join("disk");
                    std::fs::write(&path, &content).unwrap();
                    (Disk::open(&path, None).unwrap(), content)
                }
            };
            let before = disk.clone();
            let mut touched = BTreeSet::new();
            for (offset, len, value, kind) in steps {
                if kind == 0 {
                    let mut buf = vec![1; len];
                    disk.read(offset as u64, &mut buf);
                    let expected: Vec<u8> = (offset..offset + len).map(|i| oracle.get(i).copied().unwrap_or(0)).collect();
                    prop_assert_eq!(buf, expected);
                    continue;
                }
                let value = if kind == 1 { value } else { 0 };
                if kind == 1 { disk.write(offset as u64, &vec![value; len]) } else { disk.write_zeroes(offset as u64, len as u64) }
                let range = offset.min(LEN)..(offset + len).min(LEN);
                touched.extend(range.clone().map(|i| i as u64 / BLOCK));
                oracle[range].fill(value);
            }
            prop_assert_eq!(disk.take_dirty_blocks(), touched);
            let mut buf = vec![0; LEN];
            disk.read(0, &mut buf);
            prop_assert_eq!(buf, oracle);
            prop_assert!(before.written_blocks().is_empty(), "a clone shares nothing that is written later");
        }
    }

    #[test]
    fn sizes_and_files_are_checked() {
        assert!(Disk::zeroed(0).is_err());
        assert!(Disk::zeroed(513).is_err());
        assert!(Disk::zeroed(DISK_BYTES_MAX + 512).is_err());
        let error = Disk::open(Path::new("/nonexistent/disk"), None).unwrap_err();
        assert_eq!(error.to_string(), "cannot open disk image /nonexistent/disk");
    }
}

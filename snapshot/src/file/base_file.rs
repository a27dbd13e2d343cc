//! Base files: the pages of a machine's memory (its image), uncompressed, so that they can be mapped as guest RAM.
//! The parent module describes the format.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use super::atomic::write_atomically;
use super::map::MappedFile;
use super::presence::Presence;
use super::{BaseDigest, FileError, ZSTD_LEVEL, check_kind, checksum, decompress, wire};
use crate::page::{PAGE, PageBytes, PageHash, PageSource, ZEROES, is_zero};

/// Version of the format.
pub const BASE_FORMAT: u32 = 1;
/// Maximum number of pages of a base file: 1 TiB.
pub const BASE_PAGES_MAX: u64 = 1 << 28;

const MAGIC: [u8; 8] = *b"EVERBASE";
const KIND: &str = "base";
/// Offset of the digest in the file. The bitmap of pages begins at `HEAD_BYTES`.
const DIGEST_AT: usize = 40;
const HEAD_BYTES: usize = 72;
/// Maximum size of the compressed bitmap in bytes. Even for incompressible data, zstd's output is far smaller than
/// this.
const PRESENCE_STORED_MAX: usize = 2 * (BASE_PAGES_MAX / 8) as usize;
/// Maximum number of pages per write call.
const RUN_PAGES: usize = 256;

/// A mapped base file. While it is open, no program may change or truncate the file. Unlinking it is allowed.
pub struct BaseFile {
    path: PathBuf,
    map: MappedFile,
    presence: Presence,
    digest: BaseDigest,
    hashes_at: usize,
    data_at: usize,
}

impl BaseFile {
    /// Writes all pages of an image, atomically and durably. Returns the digest of the base.
    ///
    /// # Errors
    /// Returns an error if the image has more than [`BASE_PAGES_MAX`] pages, or if the host refuses, for example
    /// because the disk is full. An earlier file under this name then stays, unless only the final sync of the folder
    /// failed.
    pub fn write(path: &Path, image: &impl PageSource) -> Result<BaseDigest, FileError> {
        let Encoded { head, digest } = Encoded::of(path, image)?;
        write_atomically(path, |file| {
            put(&head, image, |len| file.set_len(len), |bytes, at| file.write_at(bytes, at))
        })?;
        Ok(digest)
    }

    /// Creates a base without a file in a folder: the host's memory holds all pages of the image. `path` is only a name
    /// for errors: the path of the file from which the image came. The base has the same bytes and digest as a file
    /// that [`BaseFile::write`] writes. Its memory is freed with its last mapping.
    ///
    /// # Errors
    /// Returns an error if the image has more than [`BASE_PAGES_MAX`] pages, or if the host has too little memory.
    pub fn in_memory(path: &Path, image: &impl PageSource) -> Result<BaseFile, FileError> {
        let Encoded { head, .. } = Encoded::of(path, image)?;
        let map = MappedFile::in_memory(|file| {
            put(&head, image, |len| file.set_len(len), |bytes, at| file.write_all_at(bytes, at))
        });
        BaseFile::of_map(path, map.map_err(FileError::io(path, "make room in memory for"))?)
    }

    /// Maps a base file and verifies all of it. The caller promises that no program changes or truncates the file while
    /// it is open.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, is not a base file of this format, or is damaged in any bit.
    pub fn open(path: &Path) -> Result<BaseFile, FileError> {
        let base = BaseFile::open_unverified(path)?;
        base.verify_all()?;
        Ok(base)
    }

    /// Maps a base file and verifies its head, its index (the bitmap of the pages and their hashes) and its length, but
    /// not its pages. The caller must call [`BaseFile::verify_all`] before it uses a page, and makes the same promise
    /// as for [`BaseFile::open`].
    ///
    /// # Errors
    /// Returns the errors of [`BaseFile::open`], except for damaged pages.
    pub(crate) fn open_unverified(path: &Path) -> Result<BaseFile, FileError> {
        BaseFile::of_map(path, MappedFile::open(path).map_err(FileError::io(path, "open"))?)
    }

    /// Verifies the head, the index and the length of a mapped base file.
    fn of_map(path: &Path, map: MappedFile) -> Result<BaseFile, FileError> {
        let bytes = map.bytes();
        check_kind(path, bytes, KIND, MAGIC, BASE_FORMAT)?;
        let damaged = |what: &str| FileError::damaged(path, what);
        let head = Head::read(bytes).ok_or_else(|| damaged("it ends within its head"))?;
        if head.pages > BASE_PAGES_MAX || head.present > head.pages || head.stored > PRESENCE_STORED_MAX {
            return Err(damaged("its head has impossible counts"));
        }
        let data_at = data_offset(head.stored, head.present);
        let len = data_at as u64 + head.pages * PAGE as u64;
        if head.data_at != data_at as u64 {
            return Err(damaged("its head has an impossible offset"));
        }
        if bytes.len() as u64 != len {
            return Err(damaged(&format!("it has {} bytes instead of {len}", bytes.len())));
        }
        if checksum(&bytes[..DIGEST_AT], &bytes[HEAD_BYTES..data_at]) != head.digest {
            return Err(damaged("the digest of its head and index does not match"));
        }
        let hashes_at = HEAD_BYTES + head.stored;
        let presence = decompress(&bytes[HEAD_BYTES..hashes_at], Presence::bytes_for(head.pages))
            .and_then(|bitmap| Presence::from_bytes(head.pages, &bitmap))
            .filter(|presence| presence.present() == head.present)
            .ok_or_else(|| damaged("its index is invalid"))?;
        let padding_at = hashes_at + head.present as usize * 32;
        if bytes[padding_at..data_at].iter().any(|&byte| byte != 0) {
            return Err(damaged("the bytes between its index and its data are not zero"));
        }
        let digest = BaseDigest(head.digest);
        Ok(BaseFile { path: path.to_owned(), map, presence, digest, hashes_at, data_at })
    }

    /// Verifies the hash of every page in the index, and that all other pages are zero. Does not read ranges that the
    /// file system reports as holes.
    ///
    /// # Errors
    /// Returns [`FileError::Damaged`] with the first damaged page, or [`FileError::Io`] if seeking in the file fails.
    pub fn verify_all(&self) -> Result<(), FileError> {
        let zero = PageHash::of(ZEROES);
        let verify = |page: u64| -> Result<(), FileError> {
            let damaged = |what| Err(FileError::damaged(&self.path, format!("page {page} {what}")));
            let content = self.content(page);
            match self.hash(page) {
                Some(hash) if hash == zero => damaged("is in the index, but all zeroes"),
                Some(hash) if content.map(PageHash::of) != Some(hash) => damaged("differs from its hash"),
                None if !content.is_some_and(is_zero) => damaged("is not in the index, but not all zeroes"),
                _ => Ok(()),
            }
        };
        // Verifies all pages that have data in the file, and all pages in the index.
        let extents = self.data_extents().map_err(FileError::io(&self.path, "read"))?;
        let mut next = 0;
        for extent in extents {
            self.presence.iter_from(next).take_while(|&page| page < extent.start).try_for_each(verify)?;
            extent.clone().try_for_each(verify)?;
            next = extent.end;
        }
        self.presence.iter_from(next).try_for_each(verify)
    }

    /// Returns the ranges of pages that have data in the file, in ascending order. All other pages are holes.
    fn data_extents(&self) -> std::io::Result<Vec<std::ops::Range<u64>>> {
        let (data_at, pages) = (self.data_at as u64, self.presence.pages());
        let end = data_at + pages * PAGE as u64;
        let mut extents = Vec::new();
        // Seeking moves the position of the file handle. Nothing else uses the position.
        let file = self.map.file();
        let mut at = data_at;
        while at < end {
            let data = match seek(file, SeekFrom::Data(at)) {
                Ok(data) => data.max(at),
                Err(Errno::NXIO) => break,
                // The file system does not support holes.
                Err(Errno::INVAL) => return Ok(std::iter::once(0..pages).collect()),
                Err(error) => return Err(error.into()),
            };
            if data >= end {
                break;
            }
            let hole = seek(file, SeekFrom::Hole(data))?.max(data + 1);
            let first = (data - data_at) / PAGE as u64;
            let after = (hole - data_at).div_ceil(PAGE as u64).min(pages);
            extents.push(first..after);
            at = data_at + after * PAGE as u64;
        }
        Ok(extents)
    }

    /// Returns the digest that identifies this base.
    pub fn digest(&self) -> BaseDigest {
        self.digest
    }
    /// Returns the path of the file. A base in memory has the path that its creator gave.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Returns the file, which a machine maps privately as guest RAM from [`BaseFile::data_offset`] on. The position of
    /// the file handle is undefined.
    pub fn file(&self) -> &Arc<File> {
        self.map.file()
    }
    /// Returns the offset of page 0 in the file, in bytes. It is a multiple of 4096.
    pub fn data_offset(&self) -> u64 {
        self.data_at as u64
    }
    /// Returns the number of pages of the image.
    pub fn pages(&self) -> u64 {
        self.presence.pages()
    }
    /// Returns the number of pages that are not all zeroes.
    pub fn present_pages(&self) -> u64 {
        self.presence.present()
    }

    /// Returns the content of page number `index`, or `None` if the page is all zeroes.
    #[inline]
    pub fn page(&self, index: u64) -> Option<&PageBytes> {
        self.presence.rank(index)?;
        self.content(index)
    }
    /// Returns the hash of page number `index`, or `None` if the page is all zeroes.
    #[inline]
    pub fn hash(&self, index: u64) -> Option<PageHash> {
        let at = self.hashes_at + self.presence.rank(index)? * 32;
        self.map.bytes().get(at..)?.first_chunk().map(|hash| PageHash(*hash))
    }
    /// Iterates over the numbers of pages that are not all zeroes, in ascending order.
    pub fn present(&self) -> impl Iterator<Item = u64> + '_ {
        self.presence.iter_from(0)
    }

    /// Returns the bytes in the file for page number `index`.
    fn content(&self, index: u64) -> Option<&PageBytes> {
        self.map.bytes().get(self.data_at + index as usize * PAGE..)?.first_chunk()
    }
}

impl fmt::Debug for BaseFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pages, present) = (self.pages(), self.present_pages());
        write!(f, "BaseFile({}, {present} of {pages} pages, {})", self.digest, self.path.display())
    }
}

/// Bytes of a base file before its pages, and the base's digest.
struct Encoded {
    head: Vec<u8>,
    digest: BaseDigest,
}

impl Encoded {
    fn of(path: &Path, image: &impl PageSource) -> Result<Encoded, FileError> {
        let pages = image.pages();
        FileError::at_most(path, "pages", pages, BASE_PAGES_MAX)?;
        let presence = Presence::new(pages, image.present().map(|(index, _, _)| index));
        let stored = zstd::bulk::compress(&presence.to_bytes(), ZSTD_LEVEL)
            .map_err(FileError::io(path, "compress the index of"))?;

        let mut head =
            Vec::with_capacity(HEAD_BYTES + stored.len() + presence.present() as usize * 32 + PAGE);
        head.extend(MAGIC);
        head.extend(BASE_FORMAT.to_le_bytes());
        head.extend((stored.len() as u32).to_le_bytes());
        head.extend(pages.to_le_bytes());
        head.extend(presence.present().to_le_bytes());
        let data_at = data_offset(stored.len(), presence.present());
        head.extend((data_at as u64).to_le_bytes());
        head.extend([0; 32]);
        head.extend(&stored);
        image.present().for_each(|(_, hash, _)| head.extend(hash.0));
        head.resize(data_at, 0);
        let digest = checksum(&head[..DIGEST_AT], &head[HEAD_BYTES..]);
        head[DIGEST_AT..HEAD_BYTES].copy_from_slice(&digest);
        Ok(Encoded { head, digest: BaseDigest(digest) })
    }
}

/// Writes the head and the pages of a base to a file and sets the file's length.
fn put<E>(
    head: &[u8],
    image: &impl PageSource,
    set_len: impl FnOnce(u64) -> Result<(), E>,
    write_at: impl Fn(&[u8], u64) -> Result<(), E>,
) -> Result<(), E> {
    let data_at = head.len() as u64;
    set_len(data_at + image.pages() * PAGE as u64)?;
    write_at(head, 0)?;
    let offset = |page: u64| data_at + page * PAGE as u64;
    let (mut first, mut run) = (0, Vec::with_capacity(RUN_PAGES * PAGE));
    for (index, _, content) in image.present() {
        if run.len() == RUN_PAGES * PAGE || index != first + (run.len() / PAGE) as u64 {
            write_at(&run, offset(first))?;
            run.clear();
            first = index;
        }
        run.extend_from_slice(content);
    }
    write_at(&run, offset(first))
}

/// Numbers in the head of the file.
struct Head {
    stored: usize,
    pages: u64,
    present: u64,
    data_at: u64,
    digest: [u8; 32],
}

impl Head {
    fn read(bytes: &[u8]) -> Option<Head> {
        let mut reader = wire::Reader::new(bytes);
        reader.take(MAGIC.len() + 4)?;
        Some(Head {
            stored: reader.u32()? as usize,
            pages: reader.u64()?,
            present: reader.u64()?,
            data_at: reader.u64()?,
            digest: reader.array()?,
        })
    }
}

/// Returns the offset of the pages, which come after a bitmap of `stored` bytes and `present` hashes.
fn data_offset(stored: usize, present: u64) -> usize {
    (HEAD_BYTES + stored + present as usize * 32).next_multiple_of(PAGE)
}

//! Reads a moment's file in three steps: the directory at the file's end, then the chunks (compressed pieces of data),
//! then the parts. A part is a named state, image or tree. No data is trusted before its BLAKE3 hash is verified. Even
//! then the file may be forged, so every count and name is checked.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use super::head::Head;
use super::{CHUNK_BYTES, CHUNK_PAGES, IMAGE_PAGES_MAX, MomentParts, NAME_BYTES_MAX, PARTS_MAX, chunks};
use crate::base::Base;
use crate::file::wire::Reader;
use crate::file::{BaseDigest, FileError, decompress};
use crate::image::PageImage;
use crate::page::{PAGE, PageRef, Pool};
use crate::tree::{Entry, Tree};

type Bases<'a> = dyn FnMut(BaseDigest) -> Option<Arc<Base>> + 'a;

pub(super) fn read(
    path: &Path,
    file: &[u8],
    head: &Head,
    pool: &Pool,
    bases: &mut Bases<'_>,
) -> Result<MomentParts, FileError> {
    let directory_at = file.len() - head.directory.stored as usize;
    let stored = &file[directory_at..];
    if blake3::hash(stored) != head.directory.hash {
        return Err(FileError::damaged(path, "the hash of its directory does not match"));
    }
    let directory = decompress(stored, head.directory.bytes as usize)
        .ok_or_else(|| FileError::damaged(path, "its directory cannot be decompressed"))?;
    let mut reader = Reader::new(&directory);

    let body = file.get(head.bytes as usize..directory_at).unwrap_or(&[]);
    let mut chunks = Chunks { path, body: Reader::new(body), number: 0 };
    let states = chunks.states(&mut reader, head.header.state_bytes)?;
    let pages = chunks.pages(&mut reader, head.header.distinct_pages, pool)?;
    if !chunks.body.is_empty() {
        return Err(FileError::damaged(path, "there are bytes between its chunks and its directory"));
    }

    let entries_max = head.header.delta_pages;
    let mut list = List { path, reader, pages: &pages, named: 0, entries: 0, entries_max };
    let parts = MomentParts {
        states: list.states(&states)?,
        images: list.images(bases)?,
        trees: list.parts("a tree", |list, _| list.entries(IMAGE_PAGES_MAX))?,
    };
    if !list.reader.is_empty() {
        return Err(list.damaged("its directory has bytes after its last entry"));
    }
    if list.named != pages.len() as u64 || list.entries != entries_max {
        return Err(list.damaged("the counts in its head and in its directory differ"));
    }
    Ok(parts)
}

/// Reads the chunks in the order of the file. Several threads may decompress the chunks of pages.
struct Chunks<'a> {
    path: &'a Path,
    body: Reader<'a>,
    number: u64,
}

impl<'a> Chunks<'a> {
    /// Returns the next chunk, which must have `len` bytes after decompression.
    fn next(&mut self, directory: &mut Reader<'_>, len: usize) -> Result<Chunk<'a>, FileError> {
        let (path, number) = (self.path, self.number);
        let damaged = |what: &str| FileError::damaged(path, format!("chunk {number} {what}"));
        self.number += 1;
        let line = directory.u32().zip(directory.array::<32>());
        let (stored, hash) = line.ok_or_else(|| damaged("is not in the directory"))?;
        let stored = self.body.take(stored as usize).ok_or_else(|| damaged("is missing"))?;
        Ok(Chunk { path, number, stored, hash, len })
    }

    fn states(&mut self, directory: &mut Reader<'_>, len: u64) -> Result<Vec<u8>, FileError> {
        let mut bytes = Vec::new();
        for _ in 0..chunks(len, 0).0 {
            let len = (len as usize - bytes.len()).min(CHUNK_BYTES);
            bytes.extend(self.next(directory, len)?.bytes()?);
        }
        Ok(bytes)
    }

    fn pages(
        &mut self,
        directory: &mut Reader<'_>,
        count: u64,
        pool: &Pool,
    ) -> Result<Vec<PageRef>, FileError> {
        let mut all = Vec::new();
        for number in 0..chunks(0, count).1 {
            let left = count - number * CHUNK_PAGES as u64;
            // The cast loses nothing, because a chunk has at most `CHUNK_PAGES` pages.
            let len = left.min(CHUNK_PAGES as u64) as usize * PAGE;
            all.push(self.next(directory, len)?);
        }
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = (all.len() / CHUNKS_OF_THREAD).clamp(1, cores.min(THREADS_MAX));
        let parts: Vec<&[Chunk<'_>]> = all.chunks(all.len().div_ceil(threads).max(1)).collect();
        // The pages stay in the order of the file, whichever thread finishes first.
        let parts: Vec<Result<Vec<PageRef>, FileError>> = match parts.as_slice() {
            [] => Vec::new(),
            [only] => vec![pages_of(only, pool)],
            several => thread::scope(|scope| {
                let started: Vec<_> =
                    several.iter().map(|part| scope.spawn(|| pages_of(part, pool))).collect();
                let joined = started.into_iter().map(|thread| thread.join());
                joined.map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
            }),
        };
        let mut pages = Vec::new();
        for part in parts {
            pages.append(&mut part?);
        }
        Ok(pages)
    }
}

/// Minimum number of chunks per thread. For fewer chunks, starting a thread would take longer than it saves.
const CHUNKS_OF_THREAD: usize = 16;
/// Maximum number of threads that decompress chunks.
const THREADS_MAX: usize = 8;

/// A chunk in its stored form.
struct Chunk<'a> {
    path: &'a Path,
    number: u64,
    stored: &'a [u8],
    hash: [u8; 32],
    /// Length in bytes after decompression.
    len: usize,
}

impl Chunk<'_> {
    fn bytes(&self) -> Result<Vec<u8>, FileError> {
        let damaged = |what: &str| FileError::damaged(self.path, format!("chunk {} {what}", self.number));
        if blake3::hash(self.stored) != self.hash {
            return Err(damaged("differs from its hash"));
        }
        decompress(self.stored, self.len).ok_or_else(|| damaged("cannot be decompressed"))
    }
}

/// Returns the pages of some chunks, in order.
fn pages_of(chunks: &[Chunk<'_>], pool: &Pool) -> Result<Vec<PageRef>, FileError> {
    let mut pages = Vec::new();
    for chunk in chunks {
        for content in chunk.bytes()?.as_chunks().0 {
            let page = pool.intern(content);
            pages.push(page.ok_or_else(|| FileError::damaged(chunk.path, "it stores a page of zeroes"))?);
        }
    }
    Ok(pages)
}

/// Reads the rest of the directory after its list of chunks: the states, images and trees.
struct List<'a> {
    path: &'a Path,
    reader: Reader<'a>,
    pages: &'a [PageRef],
    /// Number of distinct pages to which the entries read so far refer. An entry says which of the file's stored pages
    /// is at one page number of an image or a tree. Both are maps from page numbers to pages.
    named: u64,
    /// Number of entries read so far. `entries_max` is the total number of entries that the file's head states.
    entries: u64,
    entries_max: u64,
}

impl List<'_> {
    fn damaged(&self, what: impl Into<String>) -> FileError {
        FileError::damaged(self.path, what)
    }

    /// Reads all parts of one kind (states, images or trees) by calling `one` for each part.
    fn parts<T>(
        &mut self,
        kind: &str,
        mut one: impl FnMut(&mut Self, &str) -> Result<T, FileError>,
    ) -> Result<BTreeMap<String, T>, FileError> {
        let count = self.reader.u32().filter(|&count| count as usize <= PARTS_MAX);
        let count = count.ok_or_else(|| self.damaged(format!("impossible count of {kind}")))?;
        let mut parts = BTreeMap::new();
        for _ in 0..count {
            let name = self.reader.u16().map(usize::from).filter(|&len| len <= NAME_BYTES_MAX);
            let name = name.and_then(|len| self.reader.text(len));
            let name = name.ok_or_else(|| self.damaged(format!("impossible name of {kind}")))?.to_owned();
            if parts.last_key_value().is_some_and(|(last, _)| *last >= name) {
                return Err(self.damaged(format!("{kind} \"{}\" is out of order", name.escape_debug())));
            }
            let part = one(self, &name)?;
            parts.insert(name, part);
        }
        Ok(parts)
    }

    fn states(&mut self, bytes: &[u8]) -> Result<BTreeMap<String, Arc<[u8]>>, FileError> {
        let mut rest = Reader::new(bytes);
        let states = self.parts("a state", |list, name| {
            let len = list.reader.u64().and_then(|len| usize::try_from(len).ok());
            let state = len.and_then(|len| rest.take(len));
            let state = state
                .ok_or_else(|| list.damaged(format!("state \"{}\" is incomplete", name.escape_debug())))?;
            Ok(Arc::from(state))
        })?;
        if !rest.is_empty() {
            return Err(self.damaged("it has more state bytes than its directory lists"));
        }
        Ok(states)
    }

    fn images(&mut self, bases: &mut Bases<'_>) -> Result<BTreeMap<String, PageImage>, FileError> {
        self.parts("an image", |list, name| {
            let shown = name.escape_debug();
            let base = match list.reader.u8() {
                Some(0) => Arc::new(Base::Zero),
                Some(1) => list.base(name, bases)?,
                _ => return Err(list.damaged(format!("image \"{shown}\" has an impossible base"))),
            };
            let pages = list.reader.u64().filter(|&pages| pages <= IMAGE_PAGES_MAX);
            let pages =
                pages.ok_or_else(|| list.damaged(format!("image \"{shown}\" has an impossible size")))?;
            if !matches!(*base, Base::Zero) && base.pages() != pages {
                let base = base.pages();
                return Err(list.damaged(format!("image \"{shown}\" has {pages} pages and its base {base}")));
            }
            let delta = list.entries(pages)?;
            Ok(PageImage::from_parts(base, pages, &delta))
        })
    }

    fn base(&mut self, image: &str, bases: &mut Bases<'_>) -> Result<Arc<Base>, FileError> {
        let digest = self.reader.array().map(BaseDigest);
        let digest = digest.ok_or_else(|| self.damaged("its directory ends within the digest of a base"))?;
        let base = bases(digest).filter(|base| base.digest() == Some(digest));
        base.ok_or_else(|| FileError::MissingBase {
            path: self.path.to_owned(),
            image: image.escape_debug().to_string(),
            base: digest,
        })
    }

    /// Reads the entries of one image or tree. Their page numbers must be below `pages`.
    fn entries(&mut self, pages: u64) -> Result<Tree, FileError> {
        let mut tree = Tree::new();
        let count = self.reader.u64().filter(|&count| count <= self.entries_max - self.entries);
        let count = count.ok_or_else(|| self.damaged("it has an impossible count of pages"))?;
        let mut next = Some(0u64);
        for _ in 0..count {
            let line = self.reader.varint().zip(self.reader.varint());
            let (left_out, content) =
                line.ok_or_else(|| self.damaged("its directory ends within a list of pages"))?;
            let index = next.and_then(|next| next.checked_add(left_out));
            let index = index.filter(|&index| index < pages);
            let index = index.ok_or_else(|| self.damaged("it has a page beyond the end of its image"))?;
            next = index.checked_add(1);
            tree.set(index, self.entry(content)?);
            self.entries += 1;
        }
        Ok(tree)
    }

    fn entry(&mut self, content: u64) -> Result<Entry, FileError> {
        let Some(number) = content.checked_sub(1) else { return Ok(Entry::Zero) };
        // An entry refers to a page that an earlier entry named, or to the next page in the order of the file. Each
        // moment therefore has only one encoding.
        let page = if number <= self.named { self.pages.get(number as usize) } else { None };
        let page = page.ok_or_else(|| self.damaged("it names a page out of order"))?;
        self.named = self.named.max(number + 1);
        Ok(Entry::Page(page.clone()))
    }
}

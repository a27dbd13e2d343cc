//! Writing of a moment file. The head describes the moment, the chunks hold its content in pieces, and the directory
//! lists the chunks and what is in them. `write` leaves space for the head, writes each chunk when it is full, then the
//! directory, and the head last.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::path::Path;

use super::head::{self, Directory};
use super::{
    CHUNK_BYTES, CHUNK_PAGES, DIRECTORY_BYTES_MAX, ENTRIES_MAX, IMAGE_PAGES_MAX, LABEL_BYTES_MAX,
    MomentHeader, MomentInfo, MomentParts, NAME_BYTES_MAX, PARTS_MAX, STATE_BYTES_MAX,
};
use crate::file::atomic::{Temporary, write_atomically};
use crate::file::{FileError, ZSTD_LEVEL, wire};
use crate::image::PageImage;
use crate::page::{PAGE, PageHash, PageRef};
use crate::tree::{Entry, Tree};

pub(super) fn write(path: &Path, info: &MomentInfo, parts: &MomentParts) -> Result<MomentHeader, FileError> {
    check(path, info, parts)?;
    let mut pages = Pages::default();
    let list = list(parts, &mut pages);

    write_atomically(path, |file| {
        let mut out =
            Out { file, at: head::bytes_for(&info.label), chunks: Vec::new(), zstd: compressor(path)? };
        let mut pending = Vec::with_capacity(CHUNK_BYTES);
        for mut state in parts.states.values().map(|state| &state[..]) {
            while !state.is_empty() {
                let (now, later) = state.split_at(state.len().min(CHUNK_BYTES - pending.len()));
                pending.extend_from_slice(now);
                state = later;
                if pending.len() == CHUNK_BYTES {
                    out.chunk(&mut pending)?;
                }
            }
        }
        out.chunk(&mut pending)?;
        for pages in pages.contents.chunks(CHUNK_PAGES) {
            pages.iter().for_each(|page| pending.extend_from_slice(page.bytes()));
            out.chunk(&mut pending)?;
        }

        let mut directory = std::mem::take(&mut out.chunks);
        directory.extend(&list);
        let bytes = directory.len() as u64;
        FileError::at_most(path, "bytes of directory", bytes, DIRECTORY_BYTES_MAX)?;
        let stored = out.compress(&directory)?;
        out.put(&stored)?;

        let directory =
            Directory { stored: stored.len() as u64, bytes, hash: *blake3::hash(&stored).as_bytes() };
        let header = MomentHeader {
            info: info.clone(),
            state_bytes: state_bytes(parts),
            delta_pages: delta_pages(parts),
            distinct_pages: pages.contents.len() as u64,
            file_bytes: out.at,
        };
        file.write_at(&head::encode(&header, &directory), 0)?;
        Ok(header)
    })
}

fn check(path: &Path, info: &MomentInfo, parts: &MomentParts) -> Result<(), FileError> {
    let at_most = |what, count, max| FileError::at_most(path, what, count, max);
    at_most("bytes of label", info.label.len() as u64, LABEL_BYTES_MAX as u64)?;
    at_most("bytes of state", state_bytes(parts), STATE_BYTES_MAX)?;
    at_most("written pages", delta_pages(parts), ENTRIES_MAX)?;
    for count in [parts.states.len(), parts.images.len(), parts.trees.len()] {
        at_most("parts of a kind", count as u64, PARTS_MAX as u64)?;
    }
    for name in parts.states.keys().chain(parts.images.keys()).chain(parts.trees.keys()) {
        at_most("bytes of a part's name", name.len() as u64, NAME_BYTES_MAX as u64)?;
    }
    let trees = parts.trees.values().map(|tree| tree.last().map_or(0, |last| last.saturating_add(1)));
    let mut lengths = parts.images.values().map(PageImage::pages).chain(trees);
    lengths.try_for_each(|pages| at_most("pages of an image", pages, IMAGE_PAGES_MAX))
}
fn state_bytes(parts: &MomentParts) -> u64 {
    parts.states.values().map(|state| state.len() as u64).sum()
}
fn delta_pages(parts: &MomentParts) -> u64 {
    let images = parts.images.values().map(|image| image.delta().len());
    images.chain(parts.trees.values().map(Tree::len)).sum()
}

/// Distinct pages, numbered in the order in which they first occur.
#[derive(Default)]
struct Pages<'a> {
    numbers: BTreeMap<PageHash, u64>,
    contents: Vec<&'a PageRef>,
}

impl<'a> Pages<'a> {
    fn number(&mut self, page: &'a PageRef) -> u64 {
        match self.numbers.entry(page.hash()) {
            btree_map::Entry::Occupied(known) => *known.get(),
            btree_map::Entry::Vacant(new) => {
                self.contents.push(page);
                *new.insert(self.contents.len() as u64 - 1)
            }
        }
    }
}

/// Encodes the directory without its list of chunks.
fn list<'a>(parts: &'a MomentParts, pages: &mut Pages<'a>) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_count(&mut bytes, parts.states.len());
    for (name, state) in &parts.states {
        put_name(&mut bytes, name);
        bytes.extend((state.len() as u64).to_le_bytes());
    }
    put_count(&mut bytes, parts.images.len());
    for (name, image) in &parts.images {
        put_name(&mut bytes, name);
        match image.base().digest() {
            None => bytes.push(0),
            Some(digest) => {
                bytes.push(1);
                bytes.extend(digest.0);
            }
        }
        bytes.extend(image.pages().to_le_bytes());
        put_entries(&mut bytes, image.delta(), pages);
    }
    put_count(&mut bytes, parts.trees.len());
    for (name, tree) in &parts.trees {
        put_name(&mut bytes, name);
        put_entries(&mut bytes, tree, pages);
    }
    bytes
}
fn put_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend((count as u32).to_le_bytes());
}
fn put_name(bytes: &mut Vec<u8>, name: &str) {
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend(name.as_bytes());
}
fn put_entries<'a>(bytes: &mut Vec<u8>, tree: &'a Tree, pages: &mut Pages<'a>) {
    bytes.extend(tree.len().to_le_bytes());
    let mut next = 0;
    for (index, entry) in tree {
        wire::put_varint(bytes, index - next);
        next = index + 1;
        match entry {
            Entry::Zero => wire::put_varint(bytes, 0),
            Entry::Page(page) => wire::put_varint(bytes, pages.number(page) + 1),
        }
    }
}

/// Writes the file's chunks and directory, which follow the head.
struct Out<'a> {
    file: &'a Temporary<'a>,
    at: u64,
    /// Encoded list of chunks, with which the directory begins.
    chunks: Vec<u8>,
    zstd: zstd::bulk::Compressor<'static>,
}

fn compressor(path: &Path) -> Result<zstd::bulk::Compressor<'static>, FileError> {
    zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(FileError::io(path, "compress"))
}

impl Out<'_> {
    fn compress(&mut self, bytes: &[u8]) -> Result<Vec<u8>, FileError> {
        self.zstd.compress(bytes).map_err(FileError::io(self.file.target(), "compress"))
    }
    fn put(&mut self, stored: &[u8]) -> Result<(), FileError> {
        self.file.write_at(stored, self.at)?;
        self.at += stored.len() as u64;
        Ok(())
    }
    /// Writes `bytes` as a chunk and clears them. Does nothing if there are none.
    fn chunk(&mut self, bytes: &mut Vec<u8>) -> Result<(), FileError> {
        if bytes.is_empty() {
            return Ok(());
        }
        debug_assert!(bytes.len() <= CHUNK_BYTES && CHUNK_BYTES.is_multiple_of(PAGE));
        let stored = self.compress(bytes)?;
        bytes.clear();
        self.chunks.extend((stored.len() as u32).to_le_bytes());
        self.chunks.extend(blake3::hash(&stored).as_bytes());
        self.put(&stored)
    }
}

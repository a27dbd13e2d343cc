//! Writes the inode table and the directory table of a SquashFS image.
//!
//! A folder's listing refers to the inodes of its entries, and the folder's inode refers to the listing. Therefore the
//! files and folders in a folder are written before the folder itself.

use super::folders::{self, Entry, IndexEntry, Listing};
use super::metadata::{MetadataLocation, MetadataWriter};
use super::{Blocks, Error, InodeLayout, xattrs};
use crate::tree::{Inode, InodeId, Kind, Tree};
use std::collections::BTreeMap;

/// Numbers of the basic inode types. An extended type has the number of its basic type plus seven.
pub(super) const FOLDER: u16 = 1;
pub(super) const FILE: u16 = 2;
const LINK: u16 = 3;
const BLOCK_DEVICE: u16 = 4;
const CHARACTER_DEVICE: u16 = 5;
const FIFO: u16 = 6;
pub(super) const EXTENDED: u16 = 7;

/// Fragment index of a file that has no fragment.
pub(super) const NO_FRAGMENT: u32 = u32::MAX;

/// The inode table and the directory table.
pub(super) struct Tables {
    pub(super) inodes: MetadataWriter,
    pub(super) folders: MetadataWriter,
    /// The format's reference to the inode of the root folder.
    pub(super) root: u64,
}

/// Writes all inodes and all listings.
pub(super) fn write(
    tree: &Tree,
    layout: &InodeLayout,
    blocks: &Blocks,
    xattrs: &xattrs::Table,
) -> Result<Tables, Error> {
    let mut writer = Writer {
        tree,
        layout,
        blocks,
        xattrs,
        inodes: MetadataWriter::default(),
        folders: MetadataWriter::default(),
        places: BTreeMap::new(),
        parents: BTreeMap::new(),
    };
    for (id, _) in &layout.order {
        if let Kind::Folder(entries) = &tree.inode(*id).kind {
            writer.parents.extend(entries.values().map(|&child| (child, *id)));
        }
    }
    // Entries must be written before their folder. A file may be in several folders, so all files come first. `order`
    // lists each folder before the folders in it, so the reverse order writes inner folders first.
    let is_folder = |id: InodeId| matches!(tree.inode(id).kind, Kind::Folder(_));
    for (id, _) in layout.order.iter().filter(|(id, _)| !is_folder(*id)) {
        writer.inode(*id)?;
    }
    for (id, _) in layout.order.iter().rev().filter(|(id, _)| is_folder(*id)) {
        writer.inode(*id)?;
    }
    let root = writer.places.get(&Tree::ROOT).map_or(0, |place| place.reference());
    Ok(Tables { inodes: writer.inodes, folders: writer.folders, root })
}

struct Writer<'a> {
    tree: &'a Tree,
    layout: &'a InodeLayout,
    blocks: &'a Blocks,
    xattrs: &'a xattrs::Table,
    inodes: MetadataWriter,
    folders: MetadataWriter,
    places: BTreeMap<InodeId, MetadataLocation>,
    /// Parent folder of each inode. Valid only for folders, because a file may be in several folders.
    parents: BTreeMap<InodeId, InodeId>,
}

impl Writer<'_> {
    fn inode(&mut self, id: InodeId) -> Result<(), Error> {
        let inode = self.tree.inode(id);
        let xattr = self.xattrs.number(id);
        let links = self.layout.numbers[&id].links;
        let body = match &inode.kind {
            Kind::Folder(entries) => self.folder(id, entries, links, xattr)?,
            Kind::File(_) => self.file(id, links, xattr),
            Kind::Link(target) => {
                let length = u32::try_from(target.len()).map_err(|_| Error::TooMany("bytes in a link"))?;
                let mut body = Body::new(LINK, xattr);
                body.u32(links).u32(length).bytes(target);
                body.end_with_xattr()
            }
            Kind::BlockDevice(major, minor) => device(BLOCK_DEVICE, *major, *minor, links, xattr),
            Kind::CharacterDevice(major, minor) => device(CHARACTER_DEVICE, *major, *minor, links, xattr),
            Kind::Fifo => {
                let mut body = Body::new(FIFO, xattr);
                body.u32(links);
                body.end_with_xattr()
            }
        };
        self.places.insert(id, self.inodes.place());
        self.header(id, inode, body.kind);
        self.inodes.write(&body.bytes);
        Ok(())
    }

    /// Writes the header that inodes of all types share.
    fn header(&mut self, id: InodeId, inode: &Inode, kind: u16) {
        let attributes = &inode.attributes;
        // Modes have 12 bits. The format cannot express times after 2106.
        let mode = u16::try_from(attributes.mode & 0o7777).unwrap_or(0);
        let mtime = u32::try_from(attributes.mtime_s).unwrap_or(u32::MAX);
        for field in [kind, mode, self.layout.id_index(attributes.uid), self.layout.id_index(attributes.gid)]
        {
            self.inodes.write(&field.to_le_bytes());
        }
        self.inodes.write(&mtime.to_le_bytes());
        self.inodes.write(&self.layout.numbers[&id].number.to_le_bytes());
    }

    fn folder(
        &mut self,
        id: InodeId,
        entries: &BTreeMap<Vec<u8>, InodeId>,
        links: u32,
        xattr: u32,
    ) -> Result<Body, Error> {
        let entries: Vec<Entry<'_>> = entries
            .iter()
            .map(|(name, child)| Entry {
                name,
                inode: self.places[child],
                number: self.layout.numbers[child].number,
                kind: basic_kind(&self.tree.inode(*child).kind),
            })
            .collect();
        let Listing { place, bytes, index } = folders::write(&mut self.folders, &entries);
        // The root has no parent. Its parent number is one more than the highest inode number, as mksquashfs writes it.
        let outside = self.layout.count()?.wrapping_add(1);
        let parent = self.parents.get(&id).map_or(outside, |parent| self.layout.numbers[parent].number);
        let block = u32::try_from(place.block).map_err(|_| Error::TooMany("folders"))?;
        // The format adds three bytes to the length, for the entries `.` and `..`, which it does not store.
        let size = u32::try_from(bytes + 3).map_err(|_| Error::TooMany("entries in a folder"))?;
        let mut body = Body::new(FOLDER, xattr);
        match u16::try_from(size) {
            Ok(size) if xattr == xattrs::NONE && index.is_empty() => {
                body.u32(block).u32(links).u16(size).u16(place.offset).u32(parent);
            }
            _ => {
                body.kind = FOLDER + EXTENDED;
                let count = u16::try_from(index.len()).map_err(|_| Error::TooMany("entries in a folder"))?;
                body.u32(links).u32(size).u32(block).u32(parent).u16(count).u16(place.offset).u32(xattr);
                for IndexEntry { offset, block, name } in index {
                    let length = u32::try_from(name.len() - 1).unwrap_or(0);
                    body.u32(offset).u32(block).u32(length).bytes(&name);
                }
            }
        }
        Ok(body)
    }

    fn file(&self, id: InodeId, links: u32, xattr: u32) -> Body {
        let blocks = &self.blocks[&id];
        let mut body = Body::new(FILE, xattr);
        match (u32::try_from(blocks.start), u32::try_from(blocks.length)) {
            (Ok(start), Ok(length)) if links == 1 && xattr == xattrs::NONE && blocks.sparse == 0 => {
                body.u32(start).u32(NO_FRAGMENT).u32(0).u32(length);
            }
            _ => {
                body.kind = FILE + EXTENDED;
                body.u64(blocks.start).u64(blocks.length).u64(blocks.sparse).u32(links);
                body.u32(NO_FRAGMENT).u32(0).u32(xattr);
            }
        }
        for &size in &blocks.sizes {
            body.u32(size);
        }
        body
    }
}

fn device(kind: u16, major: u32, minor: u32, links: u32, xattr: u32) -> Body {
    // Encoding of a device number as the kernel's new_encode_dev does it: low eight bits of minor, 12 bits of major,
    // high bits of minor.
    let number = (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12;
    let mut body = Body::new(kind, xattr);
    body.u32(links).u32(number);
    body.end_with_xattr()
}

fn basic_kind(kind: &Kind) -> u16 {
    match kind {
        Kind::Folder(_) => FOLDER,
        Kind::File(_) => FILE,
        Kind::Link(_) => LINK,
        Kind::BlockDevice(..) => BLOCK_DEVICE,
        Kind::CharacterDevice(..) => CHARACTER_DEVICE,
        Kind::Fifo => FIFO,
    }
}

/// The part of an inode after the header. It depends on the inode's type.
struct Body {
    kind: u16,
    xattr: u32,
    bytes: Vec<u8>,
}

impl Body {
    fn new(kind: u16, xattr: u32) -> Self {
        Body { kind, xattr, bytes: Vec::new() }
    }

    fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends the number of the inode's attribute set, if it has one. Use it only for types whose extended form has
    /// just this one additional field.
    fn end_with_xattr(mut self) -> Self {
        if self.xattr != xattrs::NONE {
            self.kind += EXTENDED;
            let xattr = self.xattr;
            self.u32(xattr);
        }
        self
    }
}

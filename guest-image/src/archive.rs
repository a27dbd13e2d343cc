//! Tar archives into trees: packages' data, root filesystems, and what a guest packed.

mod entries;

pub use entries::{ENTRIES_MAX, RECORDS_BYTES_MAX};

pub(crate) use entries::each;

use crate::tree::{self, Attributes, Content, InodeId, Kind, OnFolder, Spool, Tree};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use tar::{Entry, EntryType};

/// What begins the records of sparse files in PAX archives, which the `tar` crate takes for their contents.
const PAX_SPARSE: &[u8] = b"GNU.sparse.";

/// Why an archive cannot be put into a tree.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read, or is damaged.
    #[error("the archive is damaged or cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The content of an entry cannot be taken.
    #[error("{path}: {source}")]
    Entry {
        /// The entry.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// An entry does not fit the tree.
    #[error(transparent)]
    Tree(#[from] tree::Error),
    /// It has too many entries.
    #[error("the archive has more than {ENTRIES_MAX} entries")]
    TooMany,
    /// All of it, headers included, is too long.
    #[error("the archive unpacks to more than {most} bytes")]
    Stream {
        /// The bound.
        most: u64,
    },
    /// The contents of its files are too long together.
    #[error("{path}: with this file the archive has more than {most} bytes, holes included")]
    TooLong {
        /// The first entry that is too much.
        path: String,
        /// The bound.
        most: u64,
    },
    /// An entry has too many records.
    #[error("the names and attributes of an entry have more than {RECORDS_BYTES_MAX} bytes")]
    Records,
    /// A sparse file in a format that is not read.
    #[error("{path}: a sparse file in PAX format; pack it with tar --format=gnu, or without --sparse")]
    PaxSparse {
        /// The entry.
        path: String,
    },
}

/// Where the contents of files go.
pub enum Store<'a> {
    /// They are copied: the archive is packed, or goes away.
    Spool(&'a mut Spool),
    /// They stay in this file, which the archive is. Sparse files, which are there in pieces, are copied.
    InPlace(Arc<File>, &'a mut Spool),
}

/// How entries are put into the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// As dpkg unpacks a package: folders that exist keep their attributes.
    Package,
    /// As tar unpacks: what comes later wins.
    Plain,
    /// As the upper part of an overlay, which it was: device 0/0 removes, opaque folders hide, and anything may
    /// replace anything (Linux, Documentation/filesystems/overlayfs.rst).
    Overlay,
}

/// The attribute of an opaque folder.
const OPAQUE: &[u8] = b"trusted.overlay.opaque";

/// Puts the entries of an archive into a tree, and gives their paths in order, as the archive has them.
///
/// `rename` may change the path of an entry, or leave the entry out.
///
/// # Errors
/// The archive cannot be read, or an entry does not fit.
pub fn unpack(
    archive: impl Read,
    tree: &mut Tree,
    mut store: Store<'_>,
    mode: Mode,
    rename: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> Result<Vec<Vec<u8>>, Error> {
    let mut paths = Vec::new();
    each(archive, tree::CONTENT_BYTES_MAX, |entry| {
        let original = entry.path_bytes().into_owned();
        let Some(path) = rename(&original) else { return Ok(()) };
        tree.charge(&original, original.len())?;
        put(entry, &path, tree, &mut store, mode, &rename)?;
        paths.push(original);
        Ok::<(), Error>(())
    })?;
    Ok(paths)
}

fn put<R: Read>(
    entry: &mut Entry<'_, R>,
    path: &[u8],
    tree: &mut Tree,
    store: &mut Store<'_>,
    mode: Mode,
    rename: &impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> Result<(), Error> {
    let kind = entry.header().entry_type();
    let mut attributes = attributes(entry)?;
    let opaque = attributes.xattrs.remove(OPAQUE).is_some();
    attributes.xattrs.retain(|name, _| !name.starts_with(b"trusted.overlay."));
    tree.charge(path, attributes.xattrs.iter().map(|(name, value)| name.len() + value.len()).sum())?;
    if kind == EntryType::Directory {
        if mode == Mode::Overlay {
            if tree.find(path).is_some_and(|id| !is_folder(tree, id)) {
                tree.remove(path);
            }
            if opaque {
                tree.empty(path);
            }
        }
        let on = if mode == Mode::Package { OnFolder::Keep } else { OnFolder::Update };
        return Ok(tree.put_folder(path, attributes, on)?);
    }
    if mode == Mode::Overlay && tree.find(path).is_some_and(|id| is_folder(tree, id)) {
        tree.remove(path);
    }
    let device = |entry: &Entry<'_, R>| -> io::Result<(u32, u32)> {
        let header = entry.header();
        Ok((header.device_major()?.unwrap_or(0), header.device_minor()?.unwrap_or(0)))
    };
    let kind = match kind {
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            Kind::File(content(entry, store)?)
        }
        EntryType::Symlink => {
            let target = target(entry)?;
            tree.charge(path, target.len())?;
            Kind::Link(target)
        }
        EntryType::Link => {
            let target = target(entry)?;
            let target = rename(&target).unwrap_or(target);
            return Ok(tree.put_hard_link(path, &target)?);
        }
        EntryType::Char => match device(entry)? {
            (0, 0) if mode == Mode::Overlay => {
                tree.remove(path);
                return Ok(());
            }
            (major, minor) => Kind::CharacterDevice(major, minor),
        },
        EntryType::Block => {
            let (major, minor) = device(entry)?;
            Kind::BlockDevice(major, minor)
        }
        EntryType::Fifo => Kind::Fifo,
        // Labels of volumes and the like are no files.
        _ => return Ok(()),
    };
    Ok(tree.put(path, attributes, kind)?)
}

fn is_folder(tree: &Tree, id: InodeId) -> bool {
    matches!(tree.inode(id).kind, Kind::Folder(_))
}

fn target<R: Read>(entry: &Entry<'_, R>) -> io::Result<Vec<u8>> {
    let target = entry.link_name_bytes().map(std::borrow::Cow::into_owned);
    target.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a link without a target"))
}

fn content<R: Read>(entry: &mut Entry<'_, R>, store: &mut Store<'_>) -> Result<Content, Error> {
    let spool = match store {
        Store::Spool(spool) => spool,
        Store::InPlace(_, spool) if entry.header().entry_type() == EntryType::GNUSparse => spool,
        Store::InPlace(file, _) => {
            let (offset, length) = (entry.raw_file_position(), entry.size());
            return Ok(Content::Span { file: Arc::clone(file), offset, length });
        }
    };
    let (path, size) = (entries::name(entry), entry.size());
    let content = spool.store(&mut *entry).map_err(|source| Error::Entry { path: path.clone(), source })?;
    if content.length() != size {
        let source = io::Error::new(io::ErrorKind::UnexpectedEof, "the archive is cut off in this file");
        return Err(Error::Entry { path, source });
    }
    Ok(content)
}

fn attributes<R: Read>(entry: &mut Entry<'_, R>) -> Result<Attributes, Error> {
    let header = entry.header();
    let id = |id: u64| {
        u32::try_from(id)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a user or group beyond 32 bits"))
    };
    let mut attributes = Attributes {
        mode: header.mode()? & 0o7777,
        uid: id(header.uid()?)?,
        gid: id(header.gid()?)?,
        mtime_s: header.mtime()?,
        xattrs: BTreeMap::new(),
    };
    let path = entries::name(entry);
    if let Some(extensions) = entry.pax_extensions()? {
        for extension in extensions {
            let extension = extension?;
            if extension.key_bytes().starts_with(PAX_SPARSE) {
                return Err(Error::PaxSparse { path });
            }
            if let Some(name) = extension.key_bytes().strip_prefix(b"SCHILY.xattr.") {
                attributes.xattrs.insert(name.to_vec(), extension.value_bytes().to_vec());
            }
        }
    }
    Ok(attributes)
}

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod tests;

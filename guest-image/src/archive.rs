//! Tar archives into trees: packages' data, root filesystems, and what a guest packed.

mod entries;
mod records;

pub use entries::{ENTRIES_MAX, RECORDS_BYTES_MAX, SPARSE_MAP_BYTES_MAX, SPARSE_MAPS_BYTES_MAX};

pub(crate) use entries::each;

use crate::tree::{self, Attributes, Content, InodeId, Kind, OnFolder, Spool, Tree};
use records::Records;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use tar::{Entry, EntryType};

/// What begins the records of sparse files in PAX archives, which the `tar` crate takes for their contents.
const PAX_SPARSE: &[u8] = b"GNU.sparse.";

/// What begins the records of extended attributes.
const PAX_ATTRIBUTE: &[u8] = b"SCHILY.xattr.";

/// Most bytes of the target of a link: Linux's `PATH_MAX` without the zero at the end.
pub const TARGET_BYTES_MAX: usize = 4095;

/// Most bytes of the name of an extended attribute: Linux's `XATTR_NAME_MAX`.
pub const ATTRIBUTE_NAME_BYTES_MAX: usize = 255;

/// Most bytes of the names of a file's extended attributes, and of the value of one: Linux's `XATTR_LIST_MAX` and
/// `XATTR_SIZE_MAX`.
pub const ATTRIBUTES_BYTES_MAX: usize = 64 << 10;

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
    /// The PAX records of an entry are damaged.
    #[error("{path}: its PAX records are damaged")]
    Pax {
        /// The entry.
        path: String,
    },
    /// Sparse files are in too many pieces.
    #[error("{path}: a map of sparse files of more than {most} bytes; pack them without --sparse")]
    SparseMap {
        /// The first entry that is too much.
        path: String,
        /// The bound, on the map of this file or on those of all.
        most: u64,
    },
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
    each(archive, tree::CONTENT_BYTES_MAX, |entry, records| {
        let original = records.original(records::PATH, &entry.path_bytes());
        let Some(path) = rename(&original) else { return Ok(()) };
        tree.charge(&original, original.len())?;
        put(entry, records, &path, tree, &mut store, mode, &rename)?;
        paths.push(original);
        Ok::<(), Error>(())
    })?;
    Ok(paths)
}

fn put<R: Read>(
    entry: &mut Entry<'_, R>,
    records: &Records,
    path: &[u8],
    tree: &mut Tree,
    store: &mut Store<'_>,
    mode: Mode,
    rename: &impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> Result<(), Error> {
    let kind = entry.header().entry_type();
    let mut attributes = attributes(entry, records)?;
    let opaque = attributes.xattrs.remove(OPAQUE).is_some();
    attributes.xattrs.retain(|name, _| !name.starts_with(b"trusted.overlay."));
    tree.charge(path, attributes.xattrs_bytes())?;
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
            let target = target(entry, records)?;
            tree.charge(path, target.len())?;
            Kind::Link(target)
        }
        EntryType::Link => {
            let target = target(entry, records)?;
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

fn target<R: Read>(entry: &Entry<'_, R>, records: &Records) -> Result<Vec<u8>, Error> {
    let failed = |problem: String| Error::Entry {
        path: entries::name(entry),
        source: io::Error::new(io::ErrorKind::InvalidData, problem),
    };
    let target = entry.link_name_bytes().ok_or_else(|| failed(String::from("a link without a target")))?;
    if target.len() > TARGET_BYTES_MAX {
        return Err(failed(format!("a link to more than {TARGET_BYTES_MAX} bytes")));
    }
    Ok(records.original(records::LINK_PATH, &target))
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

fn attributes<R: Read>(entry: &Entry<'_, R>, records: &Records) -> Result<Attributes, Error> {
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
    let too_long = |what: &str, most: usize| Error::Entry {
        path: entries::name(entry),
        source: io::Error::new(io::ErrorKind::InvalidData, format!("{what} of more than {most} bytes")),
    };
    let mut names_bytes = 0;
    for (key, value) in records.iter() {
        if key.starts_with(PAX_SPARSE) {
            return Err(Error::PaxSparse { path: entries::name(entry) });
        }
        let Some(name) = key.strip_prefix(PAX_ATTRIBUTE) else { continue };
        if name.len() > ATTRIBUTE_NAME_BYTES_MAX {
            return Err(too_long("an extended attribute with a name", ATTRIBUTE_NAME_BYTES_MAX));
        }
        if value.len() > ATTRIBUTES_BYTES_MAX {
            return Err(too_long("an extended attribute", ATTRIBUTES_BYTES_MAX));
        }
        // Each ends with a zero in Linux's list.
        names_bytes += name.len() + 1;
        if names_bytes > ATTRIBUTES_BYTES_MAX {
            return Err(too_long("a list of extended attributes", ATTRIBUTES_BYTES_MAX));
        }
        attributes.xattrs.insert(name.to_vec(), value.to_vec());
    }
    Ok(attributes)
}

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod tests;

//! Unpacks tar archives into trees, i.e. filesystems in memory. An archive contains the data of a package, a root
//! filesystem, or changes that a guest has packed.

mod entries;
mod records;
mod sparse;

pub use sparse::PIECES_MAX;

pub use entries::{ENTRIES_MAX, RECORDS_BYTES_MAX, SPARSE_MAP_BYTES_MAX, SPARSE_MAPS_BYTES_MAX};

pub(crate) use entries::each;

use crate::tree::{self, Attributes, Content, InodeId, Kind, OnFolder, Spool, Tree};
use records::Records;
use sparse::Sparse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use tar::{Entry, EntryType};

/// Prefix of the keywords of PAX records for extended attributes.
const PAX_ATTRIBUTE: &[u8] = b"SCHILY.xattr.";

/// Prefix of libarchive's keywords of PAX records for extended attributes. The attribute's name is percent-encoded, and
/// its value is in base64.
const LIBARCHIVE_ATTRIBUTE: &[u8] = b"LIBARCHIVE.xattr.";

/// Maximum length of a link's target, in bytes: Linux's `PATH_MAX` minus the final zero.
pub const TARGET_BYTES_MAX: usize = 4095;

/// Maximum length of an extended attribute's name, in bytes: Linux's `XATTR_NAME_MAX`.
pub const ATTRIBUTE_NAME_BYTES_MAX: usize = 255;

/// Maximum total length of the names of a file's extended attributes, in bytes, and maximum length of one attribute's
/// value: Linux's `XATTR_LIST_MAX` and `XATTR_SIZE_MAX`.
pub const ATTRIBUTES_BYTES_MAX: usize = 64 << 10;

/// Reason why an archive cannot be unpacked into a tree.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The archive is damaged or cannot be read.
    #[error("the archive is damaged or cannot be read")]
    Read(#[from] io::Error),
    /// The header or the content of an entry is invalid.
    #[error("{path}")]
    Entry {
        /// Path of the entry.
        path: String,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The tree refuses an entry.
    #[error(transparent)]
    Tree(#[from] tree::Error),
    /// The number of entries exceeds the bound.
    #[error("the archive has more than {ENTRIES_MAX} entries")]
    TooMany,
    /// The total length of the archive, with headers, exceeds the bound.
    #[error("the archive unpacks to more than {most} bytes")]
    Stream {
        /// The bound in bytes.
        most: u64,
    },
    /// The total length of the files' contents exceeds the bound.
    #[error("{path}: with this file the archive has more than {most} bytes, holes included")]
    TooLong {
        /// Path of the entry that exceeds the bound.
        path: String,
        /// The bound in bytes.
        most: u64,
    },
    /// The headers and records of an entry exceed the bound.
    #[error("the names and attributes of an entry have more than {RECORDS_BYTES_MAX} bytes")]
    Records,
    /// The PAX records of an entry are damaged.
    #[error("{path}: its PAX records are damaged")]
    Pax {
        /// Path of the entry.
        path: String,
    },
    /// The maps of sparse files exceed the bound.
    #[error(
        "{path}: with this file, the maps of sparse files have more than {most} bytes; pack it without --sparse"
    )]
    SparseMap {
        /// Path of the entry that exceeds the bound.
        path: String,
        /// The bound in bytes: of this file's map, or of all maps together.
        most: u64,
    },
}

/// Place where the contents of files are stored.
pub enum Store<'a> {
    /// Contents are copied to the spool, a temporary file. Use this for an archive that is compressed or temporary.
    Spool(&'a mut Spool),
    /// Contents stay in this file, which is the archive itself. Sparse files are stored in pieces, so they are copied
    /// to the spool.
    InPlace(Arc<File>, &'a mut Spool),
}

/// Rules by which entries are put into the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Entries are unpacked as dpkg unpacks a package: existing folders keep their attributes.
    Package,
    /// Entries are unpacked as tar does it: later entries replace earlier entries.
    Plain,
    /// Entries are unpacked as a layer of a container image over the layers below. Any kind of file may replace any
    /// other kind. An existing folder keeps its content. Only the attributes `user.*` and `security.capability` are
    /// kept.
    Layer,
    /// Entries are unpacked as the upper folder of an overlay. A character device with the number 0/0 removes the file
    /// at its path, and an opaque folder hides its former content. Any kind of file may replace any other kind (Linux,
    /// Documentation/filesystems/overlayfs.rst).
    Overlay,
}

/// Name of the extended attribute that marks a folder as opaque.
const OPAQUE: &[u8] = b"trusted.overlay.opaque";

/// Unpacks the entries of an archive into a tree. Returns the paths that the unpacked entries have in the archive, in
/// order.
///
/// `rename` may change the path of an entry, or return `None` to leave the entry out.
///
/// # Errors
/// Returns an error if the archive cannot be read or exceeds a bound, or if the tree refuses an entry.
pub fn unpack(
    archive: impl Read,
    tree: &mut Tree,
    mut store: Store<'_>,
    mode: Mode,
    rename: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> Result<Vec<Vec<u8>>, Error> {
    let mut paths = Vec::new();
    each(archive, tree::CONTENT_BYTES_MAX, |entry, records| {
        let original = original_path(entry, records);
        let Some(path) = rename(&original) else { return Ok(()) };
        tree.charge(&original, original.len())?;
        put(entry, records, &path, tree, &mut store, mode, &rename)?;
        paths.push(original);
        Ok::<(), Error>(())
    })?;
    Ok(paths)
}

/// Returns the path of an entry. Restores newlines, which [`Records`] replaces before the `tar` crate sees them. For a
/// sparse file whose header has a made-up path, returns the path from the records.
pub(crate) fn original_path<R: Read>(entry: &Entry<'_, R>, records: &Records) -> Vec<u8> {
    if let Ok(Some(Sparse { name: Some(name), .. })) = Sparse::of(records) {
        return name;
    }
    records.original(records::PATH, &entry.path_bytes())
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
    if mode == Mode::Layer {
        attributes.xattrs.retain(|name, _| name.starts_with(b"user.") || name == b"security.capability");
    }
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
        // A folder in a layer replaces everything but a folder, even a symbolic link to a folder.
        if mode == Mode::Layer && tree.find(path).is_some_and(|id| !is_folder(tree, id)) {
            tree.remove(path);
        }
        let on = if mode == Mode::Package { OnFolder::Keep } else { OnFolder::Update };
        return Ok(tree.put_folder(path, attributes, on)?);
    }
    let replaces_folders = matches!(mode, Mode::Overlay | Mode::Layer);
    if replaces_folders && tree.find(path).is_some_and(|id| is_folder(tree, id)) {
        tree.remove(path);
    }
    let device = |entry: &Entry<'_, R>| -> io::Result<(u32, u32)> {
        let header = entry.header();
        Ok((header.device_major()?.unwrap_or(0), header.device_minor()?.unwrap_or(0)))
    };
    let kind = match kind {
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            Kind::File(content(entry, records, store)?)
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
        // The remaining kinds of entries, such as volume labels, are not files.
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
        return Err(failed(format!("a link whose target has more than {TARGET_BYTES_MAX} bytes")));
    }
    Ok(records.original(records::LINK_PATH, &target))
}

fn content<R: Read>(
    entry: &mut Entry<'_, R>,
    records: &Records,
    store: &mut Store<'_>,
) -> Result<Content, Error> {
    let path = entries::name(entry);
    let failed = |source: io::Error| Error::Entry { path: path.clone(), source };
    if let Some(sparse) = Sparse::of(records).map_err(failed)? {
        let (length, stored) = (sparse.length, entry.size());
        if length > tree::CONTENT_BYTES_MAX {
            return Err(Error::TooLong { path, most: tree::CONTENT_BYTES_MAX });
        }
        let (Store::Spool(spool) | Store::InPlace(_, spool)) = store;
        let reader = sparse.reader(&mut *entry, stored).map_err(failed)?;
        return spool
            .store(reader)
            .map_err(failed)
            .inspect(|content| debug_assert_eq!(content.length(), length));
    }
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
        let decoded;
        let (name, value) = match key.strip_prefix(PAX_ATTRIBUTE) {
            Some(name) => (name, value),
            None => match key.strip_prefix(LIBARCHIVE_ATTRIBUTE) {
                Some(name) => {
                    let damaged = || Error::Pax { path: entries::name(entry) };
                    decoded = records::libarchive(name, value).ok_or_else(damaged)?;
                    (decoded.0.as_slice(), decoded.1.as_slice())
                }
                None => continue,
            },
        };
        if name.len() > ATTRIBUTE_NAME_BYTES_MAX {
            return Err(too_long("an extended attribute with a name", ATTRIBUTE_NAME_BYTES_MAX));
        }
        if value.len() > ATTRIBUTES_BYTES_MAX {
            return Err(too_long("an extended attribute", ATTRIBUTES_BYTES_MAX));
        }
        // Each name in Linux's list is followed by a zero.
        names_bytes += name.len() + 1;
        if names_bytes > ATTRIBUTES_BYTES_MAX {
            return Err(too_long("a list of extended attributes", ATTRIBUTES_BYTES_MAX));
        }
        attributes.xattrs.insert(name.to_vec(), value.to_vec());
    }
    Ok(attributes)
}

#[cfg(test)]
mod tests;

//! Tar archives into trees: packages' data, root filesystems, and what a guest packed.

use crate::tree::{self, Attributes, Content, InodeId, Kind, OnFolder, Spool, Tree};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use tar::{Entry, EntryType};

/// Most entries of an archive.
const ENTRIES_MAX: usize = 4_000_000;

/// Most bytes of a sparse file in an archive that is read in place: it is held in memory.
const SPARSE_BYTES_MAX: u64 = 256 << 20;

/// Why an archive cannot be put into a tree.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read, or is damaged.
    #[error("the archive is damaged or cannot be read: {0}")]
    Read(#[from] io::Error),
    /// An entry does not fit the tree.
    #[error(transparent)]
    Tree(#[from] tree::Error),
    /// It has too many entries.
    #[error("the archive has more than {ENTRIES_MAX} entries")]
    TooMany,
}

/// Where the contents of files go.
pub enum Store<'a> {
    /// They are copied: the archive is packed, or goes away.
    Spool(&'a mut Spool),
    /// They stay in this file, which the archive is.
    InPlace(Arc<File>),
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
    let mut archive = tar::Archive::new(archive);
    let mut paths = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        if paths.len() >= ENTRIES_MAX {
            return Err(Error::TooMany);
        }
        let original = entry.path_bytes().into_owned();
        let Some(path) = rename(&original) else { continue };
        put(&mut entry, &path, tree, &mut store, mode, &rename)?;
        paths.push(original);
    }
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
        EntryType::Symlink => Kind::Link(target(entry)?),
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

fn content<R: Read>(entry: &mut Entry<'_, R>, store: &mut Store<'_>) -> io::Result<Content> {
    match store {
        Store::Spool(spool) => spool.store(entry),
        // A sparse file's bytes are not in one piece, so it is read, holes and all.
        Store::InPlace(_) if entry.header().entry_type() == EntryType::GNUSparse => {
            if entry.size() > SPARSE_BYTES_MAX {
                return Err(io::Error::other(format!("a sparse file of {} bytes", entry.size())));
            }
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            Ok(Content::bytes(bytes))
        }
        Store::InPlace(file) => Ok(Content::Span {
            file: Arc::clone(file),
            offset: entry.raw_file_position(),
            length: entry.size(),
        }),
    }
}

fn attributes<R: Read>(entry: &mut Entry<'_, R>) -> io::Result<Attributes> {
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
    if let Some(extensions) = entry.pax_extensions()? {
        for extension in extensions {
            let extension = extension?;
            if let Some(name) = extension.key_bytes().strip_prefix(b"SCHILY.xattr.") {
                attributes.xattrs.insert(name.to_vec(), extension.value_bytes().to_vec());
            }
        }
    }
    Ok(attributes)
}

#[cfg(test)]
mod tests;

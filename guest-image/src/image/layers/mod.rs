//! Divides the packages of a root filesystem into two layers: packages that every root filesystem has, and packages
//! that a world adds.
//!
//! A machine configures the first layer, the *base*, and Everett stores the result. The other packages are then
//! unpacked on the base, and a second machine configures them. Everett builds every image in these two steps, even if
//! the base is not in the cache. The content of the cache therefore does not affect the image. The base does not depend
//! on the packages that a world adds.
//!
//! Not here: unpacking and configuring ([`super::root`]).

use super::Error;
use crate::archive::{self, Mode, Store};
use crate::cache::CacheEntry;
use crate::debian::{self, order::names, package::Package};
use crate::tree::{Attributes, InodeId, Kind, Spool, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::sync::Arc;
use tar::{EntryType, Header};

/// Packages of the base besides Debian's essential packages.
const BASE: [&str; 3] = ["usr-is-merged", "netbase", "e2fsprogs"];

/// The packages of a root, each with the SHA-256 of its file.
#[derive(Debug)]
pub(super) struct Layers<'a> {
    /// Packages of the base: Debian's essential packages, the packages in [`BASE`], and their dependencies. They are
    /// sorted by name, so that other packages do not affect their order.
    pub(super) base: Vec<(Package, &'a str)>,
    /// All other packages, in the order of the world's lock file.
    pub(super) rest: Vec<(Package, &'a str)>,
}

impl<'a> Layers<'a> {
    /// Divides packages into layers. Each package comes with the SHA-256 of its file.
    pub(super) fn of(packages: Vec<(Package, &'a str)>) -> Layers<'a> {
        let in_base = closure(&packages.iter().map(|(package, _)| package).collect::<Vec<_>>());
        let (mut base, mut rest) = (Vec::new(), Vec::new());
        for (number, package) in packages.into_iter().enumerate() {
            if in_base.contains(&number) { base.push(package) } else { rest.push(package) }
        }
        base.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        Layers { base, rest }
    }
}

/// Returns the indexes of the base's packages. If a dependency lists alternatives (`a | b`), the function takes the
/// first alternative that is present.
fn closure(packages: &[&Package]) -> BTreeSet<usize> {
    let mut provided: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, package) in packages.iter().enumerate() {
        for name in names(package.control.field("Provides").unwrap_or_default()) {
            provided.entry(name).or_insert(number);
        }
    }
    // A package that has a name takes precedence over packages that only provide the name.
    provided.extend(packages.iter().enumerate().map(|(number, package)| (package.name.as_str(), number)));
    let is_base = |package: &Package| {
        package.control.field("Essential") == Some("yes") || BASE.contains(&package.name.as_str())
    };
    let mut ahead: Vec<usize> = (0..packages.len()).filter(|&number| is_base(packages[number])).collect();
    let mut found = BTreeSet::new();
    while let Some(number) = ahead.pop() {
        if !found.insert(number) {
            continue;
        }
        for field in ["Pre-Depends", "Depends"] {
            let text = packages[number].control.field(field).unwrap_or_default();
            ahead.extend(text.split(',').filter_map(|group| {
                group.split('|').flat_map(names).find_map(|name| provided.get(name).copied())
            }));
        }
    }
    found
}

/// Writes a tree as an archive for [`read`].
pub(super) fn write(tree: &Tree, file: &mut File) -> Result<(), Error> {
    let mut writer = Writer {
        builder: tar::Builder::new(BufWriter::with_capacity(1 << 20, file)),
        names: BTreeMap::new(),
    };
    let written = writer.folder(tree, Tree::ROOT, b".").and_then(|()| writer.builder.into_inner()?.flush());
    written.map_err(|source| Error::Layer(archive::Error::Read(source)))
}

/// Reads a tree that [`write`](fn@write) has written. The contents of files stay in the file of the cache entry.
pub(super) fn read(entry: &CacheEntry, spool: &mut Spool) -> Result<Tree, Error> {
    let failed = |source: io::Error| Error::Layer(archive::Error::Read(source));
    let file = File::open(&entry.path).map_err(failed)?;
    let same = Arc::new(file.try_clone().map_err(failed)?);
    let mut tree = Tree::default();
    let keep = |path: &[u8]| Some(path.to_vec());
    archive::unpack(BufReader::new(file), &mut tree, Store::InPlace(same, spool), Mode::Plain, keep)
        .map_err(Error::Layer)?;
    Ok(tree)
}

struct Writer<W: io::Write> {
    builder: tar::Builder<W>,
    /// First path of each inode. Other names of the inode become hard links to that path.
    names: BTreeMap<InodeId, Vec<u8>>,
}

impl<W: io::Write> Writer<W> {
    fn folder(&mut self, tree: &Tree, id: InodeId, path: &[u8]) -> io::Result<()> {
        let inode = tree.inode(id);
        let Kind::Folder(entries) = &inode.kind else { return Ok(()) };
        self.put(path, &inode.attributes, EntryType::Directory, None, 0, io::empty())?;
        for (name, &id) in entries {
            let path = [path, b"/", name].concat();
            if matches!(tree.inode(id).kind, Kind::Folder(_)) {
                // The tree bounds the depth of paths, so this recursion is bounded, too.
                self.folder(tree, id, &path)?;
            } else {
                self.file(tree, id, &path)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, tree: &Tree, id: InodeId, path: &[u8]) -> io::Result<()> {
        let inode = tree.inode(id);
        let attributes = &inode.attributes;
        if let Some(first) = self.names.get(&id).cloned() {
            return self.put(path, attributes, EntryType::Link, Some(&first), 0, io::empty());
        }
        self.names.insert(id, path.to_vec());
        let device = |kind, major, minor| (kind, Some((major, minor)));
        let (kind, numbers) = match &inode.kind {
            Kind::File(content) => {
                let (length, reader) = (content.length(), content.reader()?);
                return self.put(path, attributes, EntryType::Regular, None, length, reader);
            }
            Kind::Link(target) => {
                return self.put(path, attributes, EntryType::Symlink, Some(target), 0, io::empty());
            }
            Kind::CharacterDevice(major, minor) => device(EntryType::Char, *major, *minor),
            Kind::BlockDevice(major, minor) => device(EntryType::Block, *major, *minor),
            Kind::Fifo => (EntryType::Fifo, None),
            Kind::Folder(_) => return Ok(()),
        };
        self.records(path, attributes, None)?;
        let mut header = header(attributes, kind, 0)?;
        if let Some((major, minor)) = numbers {
            header.set_device_major(major)?;
            header.set_device_minor(minor)?;
        }
        header.set_cksum();
        self.builder.append(&header, io::empty())
    }

    fn put(
        &mut self,
        path: &[u8],
        attributes: &Attributes,
        kind: EntryType,
        target: Option<&[u8]>,
        length: u64,
        content: impl io::Read,
    ) -> io::Result<()> {
        self.records(path, attributes, target)?;
        let mut header = header(attributes, kind, length)?;
        header.set_cksum();
        self.builder.append(&header, content)
    }

    /// Writes the path and the attributes as PAX records, which can contain every byte. The header has only a
    /// placeholder for the path.
    fn records(&mut self, path: &[u8], attributes: &Attributes, target: Option<&[u8]>) -> io::Result<()> {
        let xattrs = attributes.xattrs.iter();
        let mut records: Vec<(String, &[u8])> = xattrs
            .map(|(name, value)| match std::str::from_utf8(name) {
                Ok(name) => Ok((format!("SCHILY.xattr.{name}"), value.as_slice())),
                Err(_) => Err(io::Error::other("the name of an attribute is not UTF-8")),
            })
            .collect::<io::Result<_>>()?;
        records.push((String::from("path"), path));
        records.extend(target.map(|target| (String::from("linkpath"), target)));
        self.builder.append_pax_extensions(records.iter().map(|(name, value)| (name.as_str(), *value)))
    }
}

fn header(attributes: &Attributes, kind: EntryType, length: u64) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_path("x")?;
    header.set_mode(attributes.mode);
    header.set_uid(attributes.uid.into());
    header.set_gid(attributes.gid.into());
    header.set_mtime(attributes.mtime_s);
    header.set_size(length);
    Ok(header)
}

/// Returns the content of `triggers/Unincorp`: the triggers of the base that fire when files at `paths` are unpacked.
/// Such a trigger is a path. It fires if one of `paths` is the same path or below it. dpkg would record the same list
/// while it unpacks the files.
pub(super) fn triggered(tree: &Tree, paths: &[&str]) -> Result<String, Error> {
    let text = debian::database::text(tree, "triggers/File")?;
    let triggers: BTreeSet<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    let under = |path: &str, trigger: &str| {
        path.strip_prefix(trigger).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let fired = triggers.into_iter().filter(|trigger| paths.iter().any(|path| under(path, trigger)));
    // The `-` says that no package waits for the trigger (deb-triggers(5), noawait). No package needs to wait, because
    // one run of dpkg processes all triggers.
    Ok(fired.map(|trigger| format!("{trigger} -\n")).collect())
}

#[cfg(test)]
mod tests;

//! Reads a folder of the host as the root filesystem of machines.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use everett_input::file as input;

use crate::tree::{self, Attributes, CONTENT_BYTES_MAX, Content, Kind, OnFolder, Tree};

/// Failure to read a file of the folder.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub struct Error {
    /// Path of the file or folder on the host.
    pub path: PathBuf,
    /// Cause of the failure.
    pub source: io::Error,
}

/// Prefixes of the extended attributes that are copied. All other attributes are ignored.
const KEPT: [&[u8]; 2] = [b"user.", b"security.capability"];

/// Maximum length of a file's list of attribute names, and of one attribute's value, in bytes: the kernel's bound
/// (xattr(7)).
const XATTR_BYTES_MAX: usize = 64 << 10;

/// Reads all files of a folder, except sockets, into a tree, i.e. a filesystem in memory. Contents are not copied: the
/// tree refers to the files.
///
/// # Errors
/// Returns an error if a file cannot be read or the tree refuses it.
pub fn read(folder: &Path, tree: &mut Tree) -> Result<(), Error> {
    let mut reader = Reader { root: folder, tree, links: BTreeMap::new(), bytes: 0 };
    let metadata = reader.metadata(folder)?;
    if !metadata.is_dir() {
        return Err(reader.error(folder, io::ErrorKind::NotADirectory.into()));
    }
    reader.folder(folder, &metadata)
}

struct Reader<'a> {
    root: &'a Path,
    tree: &'a mut Tree,
    /// For each file with several names (hard links), the first path at which it was put into the tree. The key is the
    /// file's device number and inode number on the host.
    links: BTreeMap<(u64, u64), Vec<u8>>,
    /// Total length of the files read so far, in bytes.
    bytes: u64,
}

impl Reader<'_> {
    fn error(&self, path: &Path, source: io::Error) -> Error {
        Error { path: path.to_path_buf(), source }
    }

    fn metadata(&self, path: &Path) -> Result<Metadata, Error> {
        fs::symlink_metadata(path).map_err(|source| self.error(path, source))
    }

    fn inside(&self, path: &Path) -> Vec<u8> {
        path.strip_prefix(self.root).unwrap_or(path).as_os_str().as_bytes().to_vec()
    }

    /// Counts the memory of a path and its attributes against the tree's bound. Link targets are not counted: a folder
    /// usually has few links, and the kernel bounds the length of each.
    fn charge(&mut self, inside: &[u8], attributes: &Attributes) -> Result<(), tree::Error> {
        self.tree.charge(inside, inside.len() + attributes.xattrs_bytes())
    }

    fn folder(&mut self, path: &Path, metadata: &Metadata) -> Result<(), Error> {
        let failed = |source: io::Error| Error { path: path.to_path_buf(), source };
        let attributes = attributes(path, metadata).map_err(failed)?;
        let inside = self.inside(path);
        self.charge(&inside, &attributes).map_err(|error| failed(io::Error::other(error)))?;
        self.tree
            .put_folder(&inside, attributes, OnFolder::Update)
            .map_err(|error| failed(io::Error::other(error)))?;
        for entry in fs::read_dir(path).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let metadata = self.metadata(&path)?;
            if metadata.is_dir() {
                // The tree bounds the depth of paths, so this recursion is bounded, too.
                self.folder(&path, &metadata)?;
            } else {
                self.file(&path, &metadata).map_err(|source| self.error(&path, source))?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, metadata: &Metadata) -> io::Result<()> {
        let inside = self.inside(path);
        let kind = metadata.file_type();
        let major_minor = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
        let kind = if kind.is_symlink() {
            Kind::Link(fs::read_link(path)?.into_os_string().into_vec())
        } else if kind.is_file() {
            if metadata.nlink() > 1 {
                let inode = (metadata.dev(), metadata.ino());
                if let Some(first) = self.links.get(&inode) {
                    return self.tree.put_hard_link(&inside, first).map_err(io::Error::other);
                }
                self.links.insert(inode, inside.clone());
            }
            input::open(path)?;
            self.bytes = self.bytes.saturating_add(metadata.len());
            if self.bytes > CONTENT_BYTES_MAX {
                let problem = format!(
                    "with this file the folder has more than {CONTENT_BYTES_MAX} bytes, holes included"
                );
                return Err(io::Error::other(problem));
            }
            Kind::File(Content::Path { path: path.to_path_buf(), length: metadata.len() })
        } else if kind.is_char_device() {
            Kind::CharacterDevice(major_minor.0, major_minor.1)
        } else if kind.is_block_device() {
            Kind::BlockDevice(major_minor.0, major_minor.1)
        } else if kind.is_fifo() {
            Kind::Fifo
        } else {
            return Ok(());
        };
        let attributes = attributes(path, metadata)?;
        self.charge(&inside, &attributes).map_err(io::Error::other)?;
        self.tree.put(&inside, attributes, kind).map_err(io::Error::other)
    }
}

fn attributes(path: &Path, metadata: &Metadata) -> io::Result<Attributes> {
    Ok(Attributes {
        mode: metadata.mode() & 0o7777,
        uid: metadata.uid(),
        gid: metadata.gid(),
        mtime_s: u64::try_from(metadata.mtime()).unwrap_or(0),
        xattrs: xattrs(path)?,
    })
}

fn xattrs(path: &Path) -> io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut names = vec![0; XATTR_BYTES_MAX];
    let length = match rustix::fs::llistxattr(path, &mut names) {
        Ok(length) => length,
        Err(rustix::io::Errno::NOTSUP) => 0,
        Err(error) => return Err(error.into()),
    };
    let mut xattrs = BTreeMap::new();
    for name in names[..length].split(|&byte| byte == 0) {
        if KEPT.iter().any(|kept| name.starts_with(kept)) {
            let mut value = vec![0; XATTR_BYTES_MAX];
            let length = rustix::fs::lgetxattr(path, OsStr::from_bytes(name), &mut value)?;
            value.truncate(length);
            xattrs.insert(name.to_vec(), value);
        }
    }
    Ok(xattrs)
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::tree::{InodeId, Kind, Tree};
    use everett_input::causes::with_causes;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn of(tree: &Tree, path: &str) -> (InodeId, u32) {
        let id = tree.find(path.as_bytes()).unwrap();
        (id, tree.inode(id).attributes.mode)
    }

    #[test]
    fn a_folder_is_read_without_its_sockets() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("usr/bin")).unwrap();
        fs::write(at("usr/bin/tool"), "tool").unwrap();
        fs::set_permissions(at("usr/bin/tool"), fs::Permissions::from_mode(0o4755)).unwrap();
        fs::hard_link(at("usr/bin/tool"), at("usr/bin/same")).unwrap();
        symlink("usr/bin", at("bin")).unwrap();
        std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let mut tree = Tree::default();
        read(folder.path(), &mut tree).unwrap();
        assert_eq!(of(&tree, "usr/bin/tool").1, 0o4755);
        assert_eq!(of(&tree, "usr/bin/tool").0, of(&tree, "bin/same").0);
        assert_eq!(tree.file(b"bin/tool").unwrap().read(10).unwrap(), b"tool");
        assert!(matches!(&tree.inode(tree.find(b"bin").unwrap()).kind, Kind::Link(to) if to == b"usr/bin"));
        assert!(tree.find(b"socket").is_none());
    }

    #[test]
    fn the_total_length_of_a_folders_files_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let hole = fs::File::create(folder.path().join("hole")).unwrap();
        hole.set_len(crate::tree::CONTENT_BYTES_MAX + 1).unwrap();
        let error = with_causes(&read(folder.path(), &mut Tree::default()).unwrap_err());
        assert!(error.contains("/hole: with this file the folder has more than"), "{error}");
    }

    #[test]
    fn an_error_names_a_missing_folder() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let error = read(&missing, &mut Tree::default()).unwrap_err().to_string();
        assert!(error.contains("missing"), "{error}");
        fs::write(&missing, "").unwrap();
        assert!(read(&missing, &mut Tree::default()).is_err());
    }
}

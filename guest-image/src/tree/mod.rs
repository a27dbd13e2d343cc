//! A root filesystem in memory: names, owners, modes, links. The contents of files are in files on the host, to which
//! the tree refers. Only the contents of small files that Everett makes are in memory.
//!
//! Paths are bytes relative to the root, as in archives (`./usr/bin`, `usr/bin/` and `/usr/bin` are the same). A path's
//! parents may be symbolic links. They are resolved within the tree: if `lib` is a link to `usr/lib`, the path `lib/x`
//! is the file `usr/lib/x`.

mod content;

pub use content::{Content, Spool};

use std::collections::BTreeMap;

/// Maximum number of names in a path, and thus the maximum depth of a folder.
pub const DEPTH_MAX: usize = 256;

/// Maximum length of a name, in bytes: the kernel's `NAME_MAX`.
pub const NAME_BYTES_MAX: usize = 255;

/// Maximum number of symbolic links followed to resolve a path: the kernel's bound (path_resolution(7)).
const LINKS_FOLLOWED_MAX: usize = 40;

/// Maximum number of names in the targets of all links that are followed to resolve one path. The kernel's own bounds
/// would allow 80,000.
const LINK_NAMES_MAX: usize = 1024;

/// Maximum number of inodes of a tree. All inodes are in memory.
pub const INODES_MAX: usize = 2_000_000;

/// Maximum total length of a tree's names, link targets and extended attributes, in bytes. All of them are in memory.
pub const NAMES_BYTES_MAX: usize = 512 << 20;

/// Memory for an extended attribute besides its name and value, in bytes. In the worst case each attribute has a map
/// node of its own.
pub const ATTRIBUTE_BYTES: usize = 640;

/// Maximum total length of a tree's file contents, in bytes, holes included.
pub const CONTENT_BYTES_MAX: u64 = 16 << 30;

/// Reason why a path cannot be put into the tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct Error {
    /// The path, escaped.
    pub path: String,
    /// Description of the problem.
    pub problem: String,
}

fn fail<T>(path: &[u8], problem: impl Into<String>) -> Result<T, Error> {
    Err(Error { path: path.escape_ascii().to_string(), problem: problem.into() })
}

/// Number of an inode in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct InodeId(pub(crate) usize);

/// Attributes that inodes of all kinds have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes {
    /// Permission bits, 0 to 0o7777.
    pub mode: u32,
    /// User ID of the owner.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
    /// Modification time in seconds since 1970.
    pub mtime_s: u64,
    /// Extended attributes by full name, for example `security.capability`.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Attributes {
    /// Returns attributes with owner root, this mode and time 0.
    #[must_use]
    pub fn of_root(mode: u32) -> Self {
        Attributes { mode, ..Self::default() }
    }

    /// Returns the memory that the extended attributes need, in bytes. [`Tree::charge`] counts it.
    #[must_use]
    pub fn xattrs_bytes(&self) -> usize {
        self.xattrs.iter().map(|(name, value)| ATTRIBUTE_BYTES + name.len() + value.len()).sum()
    }
}

/// A file of any kind.
#[derive(Debug, Clone)]
pub struct Inode {
    /// Owner, mode, time and extended attributes.
    pub attributes: Attributes,
    /// Kind and content.
    pub kind: Kind,
}

/// Kind and content of an inode.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A folder with its entries, sorted by the bytes of their names.
    Folder(BTreeMap<Vec<u8>, InodeId>),
    /// A regular file.
    File(Content),
    /// A symbolic link to this path.
    Link(Vec<u8>),
    /// A character device, by major and minor number.
    CharacterDevice(u32, u32),
    /// A block device, by major and minor number.
    BlockDevice(u32, u32),
    /// A named pipe.
    Fifo,
}

/// Treatment of an existing folder when a folder is put at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFolder {
    /// The existing folder keeps its attributes, as in dpkg.
    Keep,
    /// The existing folder takes the new attributes, as in tar.
    Update,
}

/// A root filesystem.
#[derive(Debug, Clone)]
pub struct Tree {
    inodes: Vec<Inode>,
    /// Sum of all bytes passed to [`Tree::charge`].
    names_bytes: usize,
}

impl Default for Tree {
    fn default() -> Self {
        let root = Inode { attributes: Attributes::of_root(0o755), kind: Kind::Folder(BTreeMap::new()) };
        Tree { inodes: vec![root], names_bytes: 0 }
    }
}

impl Tree {
    /// The root folder.
    pub const ROOT: InodeId = InodeId(0);

    /// Adds `bytes`, the memory that `path` will need, to the tree's sum, which [`NAMES_BYTES_MAX`] bounds. Call this
    /// function before the path is stored.
    ///
    /// # Errors
    /// Returns an error if the sum exceeds [`NAMES_BYTES_MAX`].
    pub fn charge(&mut self, path: &[u8], bytes: usize) -> Result<(), Error> {
        self.names_bytes = self.names_bytes.saturating_add(bytes);
        if self.names_bytes > NAMES_BYTES_MAX {
            let path = &path[..path.len().min(NAME_BYTES_MAX)];
            return fail(
                path,
                format!("with this path, names and attributes have more than {NAMES_BYTES_MAX} bytes"),
            );
        }
        Ok(())
    }

    /// Returns an inode of this tree. `id` must be a number that this tree gave out.
    #[must_use]
    pub fn inode(&self, id: InodeId) -> &Inode {
        &self.inodes[id.0]
    }

    /// Returns the number of inodes, including inodes that no longer have a name.
    #[must_use]
    pub fn inodes(&self) -> usize {
        self.inodes.len()
    }

    /// Returns the inode at this path. Follows links among the parents, but does not follow a link at the path itself.
    #[must_use]
    pub fn find(&self, path: &[u8]) -> Option<InodeId> {
        let parts = parts(path).ok()?;
        let Some((name, parents)) = parts.split_last() else { return Some(Self::ROOT) };
        let parent = self.walk(parents)?;
        self.entry(parent, name)
    }

    /// Returns the content of the file at this path. Follows links among the parents and at the path itself.
    #[must_use]
    pub fn file(&self, path: &[u8]) -> Option<&Content> {
        let id = self.walk(&parts(path).ok()?)?;
        match &self.inode(id).kind {
            Kind::File(content) => Some(content),
            _ => None,
        }
    }

    /// Returns true if a folder is at this path. A link to a folder gives false.
    #[must_use]
    pub fn is_real_folder(&self, path: &[u8]) -> bool {
        self.find(path).is_some_and(|id| matches!(self.inode(id).kind, Kind::Folder(_)))
    }

    /// Returns true if a folder, or a link to a folder, is at this path.
    #[must_use]
    pub fn leads_to_folder(&self, path: &[u8]) -> bool {
        let folder = parts(path).ok().and_then(|parts| self.walk(&parts));
        folder.is_some_and(|id| matches!(self.inode(id).kind, Kind::Folder(_)))
    }

    /// Puts a folder at this path, and makes missing parents.
    ///
    /// # Errors
    /// Returns an error if the path is not allowed, or if the path exists and does not lead to a folder.
    pub fn put_folder(&mut self, path: &[u8], attributes: Attributes, on: OnFolder) -> Result<(), Error> {
        let parts = parts(path)?;
        let Some((name, parents)) = parts.split_last() else {
            if on == OnFolder::Update {
                self.inodes[Self::ROOT.0].attributes = attributes;
            }
            return Ok(());
        };
        let parent = self.make_parents(path, parents)?;
        if let Some(id) = self.entry(parent, name) {
            // If a link to a folder is here, the link stays, and the folder behind it keeps its attributes.
            let behind = self.walk(&parts);
            if !behind.is_some_and(|id| matches!(self.inode(id).kind, Kind::Folder(_))) {
                return fail(path, "cannot put a folder here: something else exists at this path");
            }
            if on == OnFolder::Update && matches!(self.inode(id).kind, Kind::Folder(_)) {
                self.inodes[id.0].attributes = attributes;
            }
            return Ok(());
        }
        self.attach(path, parent, name, Inode { attributes, kind: Kind::Folder(BTreeMap::new()) })
    }

    /// Puts an inode that is not a folder at this path. Replaces an existing inode that is not a folder.
    ///
    /// # Errors
    /// Returns an error if the path is not allowed, or if a folder is there.
    pub fn put(&mut self, path: &[u8], attributes: Attributes, kind: Kind) -> Result<(), Error> {
        let (parent, name) = self.place(path)?;
        self.attach(path, parent, &name, Inode { attributes, kind })
    }

    /// Adds another name for the file at `target`.
    ///
    /// # Errors
    /// Returns an error if `target` does not exist or is a folder, if `path` is not allowed, or if a folder is at
    /// `path`.
    pub fn put_hard_link(&mut self, path: &[u8], target: &[u8]) -> Result<(), Error> {
        let Some(id) = self.find(target) else {
            return fail(path, format!("a hard link to {}, which does not exist", target.escape_ascii()));
        };
        if matches!(self.inode(id).kind, Kind::Folder(_)) {
            return fail(path, format!("a hard link to the folder {}", target.escape_ascii()));
        }
        let (parent, name) = self.place(path)?;
        self.entries_mut(parent).insert(name, id);
        Ok(())
    }

    /// Removes the inode at this path and everything below it. Does nothing if the path does not exist.
    pub fn remove(&mut self, path: &[u8]) {
        let Ok(parts) = parts(path) else { return };
        let Some((name, parents)) = parts.split_last() else { return };
        if let Some(parent) = self.walk(parents)
            && let Kind::Folder(entries) = &mut self.inodes[parent.0].kind
        {
            entries.remove(name.as_slice());
        }
    }

    /// Removes everything in the folder at this path. The folder itself stays.
    pub fn empty(&mut self, path: &[u8]) {
        if let Some(id) = self.find(path)
            && let Kind::Folder(entries) = &mut self.inodes[id.0].kind
        {
            entries.clear();
        }
    }

    /// Sets all modification times later than `latest_s` to `latest_s`. Later times belong to files that the build of
    /// the image made, and mean nothing.
    pub fn clamp_times(&mut self, latest_s: u64) {
        for inode in &mut self.inodes {
            inode.attributes.mtime_s = inode.attributes.mtime_s.min(latest_s);
        }
    }

    /// Returns the parent folder and the name for an inode that is not a folder. Makes missing parents.
    fn place(&mut self, path: &[u8]) -> Result<(InodeId, Vec<u8>), Error> {
        let parts = parts(path)?;
        let Some((name, parents)) = parts.split_last() else {
            return fail(path, "the root cannot be a file");
        };
        let parent = self.make_parents(path, parents)?;
        if self.entry(parent, name).is_some_and(|id| matches!(self.inode(id).kind, Kind::Folder(_))) {
            return fail(path, "cannot replace a folder by a file");
        }
        Ok((parent, name.clone()))
    }

    fn attach(&mut self, path: &[u8], parent: InodeId, name: &[u8], inode: Inode) -> Result<(), Error> {
        if self.inodes.len() >= INODES_MAX {
            return fail(path, format!("more than {INODES_MAX} files and folders"));
        }
        let id = InodeId(self.inodes.len());
        self.inodes.push(inode);
        self.entries_mut(parent).insert(name.to_vec(), id);
        Ok(())
    }

    fn entry(&self, folder: InodeId, name: &[u8]) -> Option<InodeId> {
        match &self.inode(folder).kind {
            Kind::Folder(entries) => entries.get(name).copied(),
            _ => None,
        }
    }

    /// Returns the entries of an inode. The caller has checked that the inode is a folder.
    fn entries_mut(&mut self, folder: InodeId) -> &mut BTreeMap<Vec<u8>, InodeId> {
        match &mut self.inodes[folder.0].kind {
            Kind::Folder(entries) => entries,
            _ => unreachable!("a parent is always a folder"),
        }
    }

    /// Returns the folder at the end of these names. Makes missing folders.
    fn make_parents(&mut self, path: &[u8], names: &[Vec<u8>]) -> Result<InodeId, Error> {
        let (there, mut parent) = self.reach(names);
        if !matches!(self.inode(parent).kind, Kind::Folder(_)) {
            return fail(path, "a parent is not a folder");
        }
        for name in &names[there..] {
            if self.entry(parent, name).is_some() {
                return fail(path, "a parent is a symbolic link that cannot be followed");
            }
            let kind = Kind::Folder(BTreeMap::new());
            self.attach(path, parent, name, Inode { attributes: Attributes::of_root(0o755), kind })?;
            parent = InodeId(self.inodes.len() - 1);
        }
        Ok(parent)
    }

    /// Returns the inode at the end of these names, if it exists. Follows links.
    fn walk(&self, names: &[Vec<u8>]) -> Option<InodeId> {
        let (there, id) = self.reach(names);
        (there == names.len()).then_some(id)
    }

    /// Follows names from the root, and all links among them, until a name does not exist. Returns the number of names
    /// that exist, and the inode at the last existing name.
    fn reach<'a>(&'a self, names: &'a [Vec<u8>]) -> (usize, InodeId) {
        // `ahead` contains the names still to follow, with the next one last. `trail` contains the folders from the
        // root to the current one.
        let mut ahead: Vec<&[u8]> = names.iter().rev().map(Vec::as_slice).collect();
        let mut trail = vec![Self::ROOT];
        let (mut followed, mut of_links) = (0, 0);
        let (mut there, mut reached) = (0, Self::ROOT);
        // Number of `names` taken from `ahead`. The names of a link's target are pushed on top of the names that
        // remain.
        let mut taken = 0;
        loop {
            let Some(&here) = trail.last() else { return (there, reached) };
            let is_own = ahead.len() == names.len() - taken;
            if is_own {
                (there, reached) = (taken, here);
            }
            let Some(name) = ahead.pop() else { return (there, reached) };
            taken += usize::from(is_own);
            match name {
                b"" | b"." => continue,
                b".." => {
                    if trail.len() > 1 {
                        trail.pop();
                    }
                    continue;
                }
                _ => {}
            }
            let Some(next) = self.entry(here, name) else { return (there, reached) };
            let Kind::Link(target) = &self.inode(next).kind else {
                trail.push(next);
                continue;
            };
            followed += 1;
            of_links += target.iter().filter(|&&byte| byte == b'/').count() + 1;
            if followed > LINKS_FOLLOWED_MAX || of_links > LINK_NAMES_MAX {
                return (there, reached);
            }
            if target.starts_with(b"/") {
                trail.truncate(1);
            }
            ahead.extend(target.split(|&byte| byte == b'/').rev());
        }
    }
}

/// Splits a path into its names. Leaves out empty names and `.`.
fn parts(path: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let mut parts = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return fail(path, "contains `..`"),
            _ if part.contains(&0) => return fail(path, "contains a zero byte"),
            _ if part.len() > NAME_BYTES_MAX => {
                return fail(path, format!("a name of more than {NAME_BYTES_MAX} bytes"));
            }
            _ => parts.push(part.to_vec()),
        }
    }
    if parts.len() > DEPTH_MAX {
        return fail(path, format!("more than {DEPTH_MAX} folders deep"));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests;

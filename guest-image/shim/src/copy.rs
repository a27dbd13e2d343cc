//! Copies folders with the owners, modes, times and attributes of their files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};

use crate::{Context as _, Failure};

/// Maximum depth of nested folders.
const DEPTH_MAX: usize = 256;
/// Maximum length of a list of attribute names, and of an attribute's value, in bytes (attr(5)).
const ATTRIBUTE_BYTES_MAX: usize = 64 << 10;

/// Paths of the first copies of files with several names, by device and inode number.
type Links = BTreeMap<(u64, u64), PathBuf>;

/// Copies the content and the attributes of a folder into another folder.
/// Replaces existing files, so an interrupted copy can be repeated.
pub(crate) fn folder(from: &Path, to: &Path) -> Result<(), Failure> {
    within(from, to, &mut Links::new(), DEPTH_MAX)
}

fn within(from: &Path, to: &Path, links: &mut Links, depth: usize) -> Result<(), Failure> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Failure::new(format!("cannot copy {}: too many folders deep", from.display())));
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(from).context(|| format!("read {}", from.display()))? {
        names.push(entry.context(|| format!("read {}", from.display()))?.file_name());
    }
    // The names are sorted, so the order does not depend on the filesystem.
    names.sort();
    for name in names {
        let (from, to) = (from.join(&name), to.join(&name));
        let metadata = fs::symlink_metadata(&from).context(|| format!("look at {}", from.display()))?;
        if metadata.is_dir() {
            if !fs::symlink_metadata(&to).is_ok_and(|there| there.is_dir()) {
                let _ = fs::remove_file(&to);
                fs::create_dir(&to).context(|| format!("make {}", to.display()))?;
            }
            within(&from, &to, links, depth)?;
        } else {
            file(&from, &to, &metadata, links)?;
        }
    }
    let metadata = fs::symlink_metadata(from).context(|| format!("look at {}", from.display()))?;
    attributes(from, to, &metadata)
}

fn file(from: &Path, to: &Path, metadata: &fs::Metadata, links: &mut Links) -> Result<(), Failure> {
    let what = || format!("copy {} to {}", from.display(), to.display());
    let kind = metadata.file_type();
    if kind.is_socket() {
        return Ok(());
    }
    if fs::symlink_metadata(to).is_ok() {
        fs::remove_file(to).context(what)?;
    }
    if metadata.nlink() > 1 {
        if let Some(first) = links.get(&(metadata.dev(), metadata.ino())) {
            return fs::hard_link(first, to).context(what);
        }
        links.insert((metadata.dev(), metadata.ino()), to.to_path_buf());
    }
    if kind.is_symlink() {
        let target = fs::read_link(from).context(what)?;
        symlink(target, to).context(what)?;
    } else if kind.is_file() {
        fs::copy(from, to).context(what)?;
    } else {
        let node = if kind.is_fifo() {
            FileType::Fifo
        } else if kind.is_block_device() {
            FileType::BlockDevice
        } else {
            FileType::CharacterDevice
        };
        rustix::fs::mknodat(CWD, to, node, Mode::from_raw_mode(0o600), metadata.rdev()).context(what)?;
    }
    attributes(from, to, metadata)
}

/// Gives `to` the owner, attributes, mode and time of `from`. The owner comes first, because a change of the owner
/// clears mode bits and capabilities.
fn attributes(from: &Path, to: &Path, metadata: &fs::Metadata) -> Result<(), Failure> {
    let what = || format!("set the attributes of {}", to.display());
    std::os::unix::fs::lchown(to, Some(metadata.uid()), Some(metadata.gid())).context(what)?;
    if !metadata.file_type().is_symlink() {
        let mut names = vec![0; ATTRIBUTE_BYTES_MAX];
        let length = rustix::fs::llistxattr(from, &mut names[..]).unwrap_or(0);
        for name in names[..length].split(|&byte| byte == 0) {
            if name.starts_with(b"user.") || name == b"security.capability" {
                let mut value = vec![0; ATTRIBUTE_BYTES_MAX];
                let length = rustix::fs::lgetxattr(from, name, &mut value[..]).context(what)?;
                // Fails on a filesystem that cannot store the attribute, such as a tmpfs. The copy then lacks it.
                let _ = rustix::fs::lsetxattr(to, name, &value[..length], XattrFlags::empty());
            }
        }
        fs::set_permissions(to, fs::Permissions::from_mode(metadata.mode() & 0o7777)).context(what)?;
    }
    let time = Timespec { tv_sec: metadata.mtime(), tv_nsec: metadata.mtime_nsec() as _ };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW).context(what)
}

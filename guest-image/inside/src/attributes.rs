//! Attributes of a file, as fields of a frame.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use crate::frames::field;

/// Returns the letter with which `ls -l` shows the kind of a file.
pub(crate) fn kind(metadata: &Metadata) -> char {
    let kind = metadata.file_type();
    if kind.is_file() {
        '-'
    } else if kind.is_dir() {
        'd'
    } else if kind.is_symlink() {
        'l'
    } else if kind.is_char_device() {
        'c'
    } else if kind.is_block_device() {
        'b'
    } else if kind.is_fifo() {
        'p'
    } else {
        's'
    }
}

/// Returns the attributes of the file at `path`: kind, permission bits (octal), user, group, length, time of the last
/// change in seconds and nanoseconds, inode, number of names, device number (major, minor), name, and target of a
/// symbolic link.
pub(crate) fn attributes(name: &OsStr, path: &Path, metadata: &Metadata) -> std::io::Result<String> {
    let device = metadata.rdev();
    let mut fields = format!(
        "{} {:o} {} {} {} {} {} {} {} {} {} {}",
        kind(metadata),
        metadata.mode() & 0o7777,
        metadata.uid(),
        metadata.gid(),
        metadata.size(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ino(),
        metadata.nlink(),
        rustix::fs::major(device),
        rustix::fs::minor(device),
        field(name.as_bytes()),
    );
    if metadata.is_symlink() {
        fields.push(' ');
        fields.push_str(&field(std::fs::read_link(path)?.as_os_str().as_bytes()));
    }
    Ok(fields)
}

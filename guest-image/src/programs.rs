//! The ELF programs in a root filesystem written by [`crate::squashfs`], with their contents.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use backhand::{BackhandError, BufReadSeek, FilesystemReader, InnerNode};

use crate::oci::{RootDisk, RootPart};

/// Magic number of an ELF file.
const ELF: &[u8] = b"\x7fELF";

/// Failure to read the programs of an image.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct Error {
    path: PathBuf,
    why: BackhandError,
}

/// Passes all ELF files of an image to `visit`, in the order of their paths. Holds one file in memory at a time.
///
/// # Errors
/// Returns an error if the file is not a SquashFS image or cannot be read.
pub fn of_root(image: &Path, visit: &mut dyn FnMut(&Path, &[u8])) -> Result<(), Error> {
    let at = |why: BackhandError| Error { path: image.to_owned(), why };
    let file = File::open(image).map_err(|error| at(error.into()))?;
    of_reader(BufReader::new(file), visit).map_err(at)
}

/// Passes all ELF files of a container image's root filesystem to `visit`, as [`of_root`] does.
///
/// # Errors
/// Returns an error if the disk is not a SquashFS image or cannot be read.
pub fn of_disk(disk: &RootDisk, visit: &mut dyn FnMut(&Path, &[u8])) -> Result<(), Error> {
    let path = disk.parts.first().map(|part| part.path.clone()).unwrap_or_default();
    let at = |why: BackhandError| Error { path: path.clone(), why };
    let parts = Parts::open(disk).map_err(|error| at(error.into()))?;
    of_reader(BufReader::new(parts), visit).map_err(at)
}

/// A disk in parts, as one file.
struct Parts {
    /// Files with the offset in each and the length, in the order of the disk.
    parts: Vec<(File, u64, u64)>,
    position: u64,
}

impl Parts {
    fn open(disk: &RootDisk) -> io::Result<Parts> {
        let part = |part: &RootPart| Ok((File::open(&part.path)?, part.offset, part.bytes));
        Ok(Parts { parts: disk.parts.iter().map(part).collect::<io::Result<_>>()?, position: 0 })
    }
}

impl Read for Parts {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut start = 0;
        for (file, offset, bytes) in &self.parts {
            if self.position < start + bytes {
                let at = self.position - start;
                let most = usize::try_from(bytes - at).map_or(buffer.len(), |left| left.min(buffer.len()));
                let read = file.read_at(&mut buffer[..most], offset + at)?;
                self.position += read as u64;
                return Ok(read);
            }
            start += bytes;
        }
        Ok(0)
    }
}

impl Seek for Parts {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let from = |base: u64, by: i64| {
            base.checked_add_signed(by).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
        };
        self.position = match to {
            SeekFrom::Start(position) => position,
            SeekFrom::Current(by) => from(self.position, by)?,
            SeekFrom::End(by) => from(self.parts.iter().map(|(.., bytes)| bytes).sum(), by)?,
        };
        Ok(self.position)
    }
}

fn of_reader(reader: impl BufReadSeek, visit: &mut dyn FnMut(&Path, &[u8])) -> Result<(), BackhandError> {
    let reader = FilesystemReader::from_reader(reader)?;
    let mut content = Vec::new();
    for node in reader.files() {
        let InnerNode::File(file) = &node.inner else { continue };
        content.clear();
        let mut bytes = reader.file(file).reader();
        bytes.by_ref().take(ELF.len() as u64).read_to_end(&mut content)?;
        if content == ELF {
            bytes.read_to_end(&mut content)?;
            visit(&node.fullpath, &content);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Attributes, Content, Kind, Tree};
    use std::collections::BTreeMap;

    #[test]
    fn programs_are_files_with_the_elf_magic_number() {
        let mut tree = Tree::default();
        let attributes = || Attributes { mode: 0o755, uid: 0, gid: 0, mtime_s: 1, xattrs: BTreeMap::new() };
        let long = [ELF, &[7; 300_000]].concat();
        for (path, content) in
            [("usr/bin/b", &long[..]), ("usr/bin/a", ELF), ("etc/elf", b"\x7fEL"), ("etc/text", b"#!/bin/sh")]
        {
            tree.put(path.as_bytes(), attributes(), Kind::File(Content::bytes(content))).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("root");
        crate::squashfs::write(&tree, 1, &mut File::create(&image).unwrap()).unwrap();
        let mut seen = Vec::new();
        of_root(&image, &mut |path, content| seen.push((path.display().to_string(), content.len()))).unwrap();
        assert_eq!(seen, [("/usr/bin/a".to_owned(), 4), ("/usr/bin/b".to_owned(), long.len())]);
        std::fs::write(&image, b"no image").unwrap();
        let error = of_root(&image, &mut |_, _| ()).unwrap_err().to_string();
        assert!(error.starts_with(&image.display().to_string()), "{error}");
    }
}

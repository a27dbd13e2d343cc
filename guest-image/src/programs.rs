//! Reads the ELF programs of a root filesystem that [`crate::squashfs`] has written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use everett_elf::MAGIC;

use crate::oci::{RootDisk, RootPart};
use crate::squashfs;
use crate::squashfs::read::{Reader, Source};

/// Failure to read the programs of an image.
#[derive(Debug, thiserror::Error)]
#[error("{}", path.display())]
pub struct Error {
    path: PathBuf,
    source: io::Error,
}

/// Calls `visit` for each ELF file of an image, in the order of their paths. One file at a time is in memory.
///
/// # Errors
/// Returns an error if the file is not a SquashFS image that Everett wrote, or cannot be read.
pub fn of_root(image: &Path, visit: &mut dyn FnMut(&Path, &[u8])) -> Result<(), Error> {
    let read = Parts::of_root(image).and_then(|parts| of_parts(&parts, visit));
    read.map_err(|source| Error { path: image.to_owned(), source })
}

/// Calls `visit` for each ELF file of a container image's root filesystem, as [`of_root`] does.
///
/// # Errors
/// Returns an error if the disk is not a SquashFS image that Everett wrote, or cannot be read.
pub fn of_disk(disk: &RootDisk, visit: &mut dyn FnMut(&Path, &[u8])) -> Result<(), Error> {
    let read = Parts::of_disk(disk).and_then(|parts| of_parts(&parts, visit));
    read.map_err(|source| Error { path: path_of(disk), source })
}

/// Returns the path of a disk's first file. Errors name the disk by it.
fn path_of(disk: &RootDisk) -> PathBuf {
    disk.parts.first().map(|part| part.path.clone()).unwrap_or_default()
}

/// The regular files of a root filesystem, by path. Contents are read one at a time.
pub struct ImageFiles {
    path: PathBuf,
    parts: Parts,
    files: BTreeMap<PathBuf, squashfs::read::File>,
}

impl ImageFiles {
    /// Lists the files of an image.
    ///
    /// # Errors
    /// Returns an error if the file is not a SquashFS image that Everett wrote, or cannot be read.
    pub fn of_root(image: &Path) -> Result<ImageFiles, Error> {
        ImageFiles::new(image.to_owned(), Parts::of_root(image))
    }

    /// Lists the files of a container image's root filesystem.
    ///
    /// # Errors
    /// Returns an error if the disk is not a SquashFS image that Everett wrote, or cannot be read.
    pub fn of_disk(disk: &RootDisk) -> Result<ImageFiles, Error> {
        ImageFiles::new(path_of(disk), Parts::of_disk(disk))
    }

    fn new(path: PathBuf, parts: io::Result<Parts>) -> Result<ImageFiles, Error> {
        let list = |parts: Parts| {
            let mut files = BTreeMap::new();
            Reader::new(&parts)?.files(&mut |path, file| {
                files.insert(path.to_owned(), file.clone());
                Ok(())
            })?;
            Ok((parts, files))
        };
        match parts.and_then(list) {
            Ok((parts, files)) => Ok(ImageFiles { path, parts, files }),
            Err(source) => Err(Error { path, source }),
        }
    }

    /// Returns the content of a file. `None` if the image has no regular file with this path, or if the file is longer
    /// than `max` bytes.
    ///
    /// # Errors
    /// Returns an error if the image is damaged or cannot be read.
    pub fn read(&self, path: &Path, max: u64) -> Result<Option<Vec<u8>>, Error> {
        let Some(file) = self.files.get(path).filter(|file| file.length <= max) else { return Ok(None) };
        let mut content = Vec::new();
        let read = Reader::new(&self.parts).and_then(|reader| reader.read(file, file.length, &mut content));
        read.map(|()| Some(content)).map_err(|source| Error { path: self.path.clone(), source })
    }
}

/// Parts of files that together make a disk: the file, the offset in it and the length in bytes, in order.
struct Parts(Vec<(File, u64, u64)>);

impl Parts {
    fn of_root(image: &Path) -> io::Result<Parts> {
        let file = File::open(image)?;
        let bytes = file.metadata()?.len();
        Ok(Parts(vec![(file, 0, bytes)]))
    }

    fn of_disk(disk: &RootDisk) -> io::Result<Parts> {
        let part = |part: &RootPart| Ok((File::open(&part.path)?, part.offset, part.bytes));
        Ok(Parts(disk.parts.iter().map(part).collect::<io::Result<_>>()?))
    }
}

impl Source for Parts {
    fn read(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        for (file, start, bytes) in &self.0 {
            if buffer.is_empty() {
                break;
            }
            let Some(left) = bytes.checked_sub(offset) else {
                offset -= bytes;
                continue;
            };
            let here = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            let (now, later) = buffer.split_at_mut(here);
            file.read_exact_at(now, start + offset)?;
            (buffer, offset) = (later, 0);
        }
        if buffer.is_empty() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

fn of_parts(parts: &Parts, visit: &mut dyn FnMut(&Path, &[u8])) -> io::Result<()> {
    let reader = Reader::new(parts)?;
    let mut content = Vec::new();
    reader.files(&mut |path, file| {
        content.clear();
        reader.read(file, MAGIC.len() as u64, &mut content)?;
        if content == MAGIC {
            content.clear();
            reader.read(file, file.length, &mut content)?;
            visit(path, &content);
        }
        Ok(())
    })
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
        let long = [&MAGIC[..], &[7; 300_000]].concat();
        for (path, content) in [
            ("usr/bin/b", &long[..]),
            ("usr/bin/a", &MAGIC),
            ("etc/elf", b"\x7fEL"),
            ("etc/text", b"#!/bin/sh"),
        ] {
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

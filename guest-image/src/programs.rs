//! Reads the ELF programs of a root filesystem that [`crate::squashfs`] has written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use everett_elf::MAGIC;

use crate::oci::{RootDisk, RootPart};
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
    let mut read = || {
        let file = File::open(image)?;
        let bytes = file.metadata()?.len();
        of_parts(&Parts(vec![(file, 0, bytes)]), visit)
    };
    read().map_err(|source| Error { path: image.to_owned(), source })
}

/// Calls `visit` for each ELF file of a container image's root filesystem, as [`of_root`] does.
///
/// # Errors
/// Returns an error if the disk is not a SquashFS image that Everett wrote, or cannot be read.
pub fn of_disk(disk: &RootDisk, visit: &mut dyn FnMut(&Path, &[u8])) -> Result<(), Error> {
    let path = disk.parts.first().map(|part| part.path.clone()).unwrap_or_default();
    let part = |part: &RootPart| Ok((File::open(&part.path)?, part.offset, part.bytes));
    let parts = disk.parts.iter().map(part).collect::<io::Result<_>>();
    parts.and_then(|parts| of_parts(&Parts(parts), visit)).map_err(|source| Error { path, source })
}

/// Parts of files that together make a disk: the file, the offset in it and the length in bytes, in order.
struct Parts(Vec<(File, u64, u64)>);

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

//! The ELF programs in a root filesystem written by [`crate::squashfs`], with their contents.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use backhand::{BackhandError, FilesystemReader, InnerNode};

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
    let reader = FilesystemReader::from_reader(BufReader::new(file)).map_err(at)?;
    let mut content = Vec::new();
    for node in reader.files() {
        let InnerNode::File(file) = &node.inner else { continue };
        content.clear();
        let mut bytes = reader.file(file).reader();
        let begin = bytes.by_ref().take(ELF.len() as u64).read_to_end(&mut content);
        begin.map_err(|error| at(error.into()))?;
        if content == ELF {
            bytes.read_to_end(&mut content).map_err(|error| at(error.into()))?;
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

//! Applies a layer's changes to the layers below it (OCI image specification, "Image Layer Filesystem Changeset").
//!
//! A file named `.wh.NAME` (a *whiteout*) removes NAME. A file named `.wh..wh..opq` removes the whole content of its
//! folder. Both remove only files of lower layers, even if the layer's own archive has a file at the same path before
//! the whiteout. Everett therefore reads the archive twice: the first pass removes files, and the second adds the
//! layer's own files.

use std::fs::File;
use std::io::{self, BufReader};
use std::sync::Arc;

use super::error::Problem;
use super::limits::LAYER_BYTES_MAX;
use crate::archive::{self, Mode, Store};
use crate::tree::{Spool, Tree};

/// Prefix of whiteouts.
const WHITEOUT: &[u8] = b".wh.";
/// Name of the file that makes a folder opaque: it hides the folder's content in lower layers.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Prefix of other files that the filesystem AUFS writes. Everett ignores them.
const META: &[u8] = b".wh..wh.";

/// Removal that an entry of a layer stands for.
#[derive(Debug, PartialEq, Eq)]
enum Whiteout {
    /// The entry is an ordinary file or folder and removes nothing.
    No,
    /// The entry removes the file or folder at this path.
    Entry(Vec<u8>),
    /// The entry removes the content of the folder at this path.
    Content(Vec<u8>),
    /// The entry is a file of AUFS, which is ignored.
    Ignored,
    /// The entry is a whiteout without a valid name.
    Malformed,
}

fn whiteout(path: &[u8]) -> Whiteout {
    let trimmed = path.strip_suffix(b"/").unwrap_or(path);
    let start = trimmed.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let (folder, name) = trimmed.split_at(start);
    // A whiteout is a file, so no path can lead through it. AUFS's own folders are the exception.
    for part in folder.split(|&byte| byte == b'/') {
        if part.starts_with(META) {
            return Whiteout::Ignored;
        }
        if part.starts_with(WHITEOUT) {
            return Whiteout::Malformed;
        }
    }
    if name == OPAQUE {
        return Whiteout::Content(folder.to_vec());
    }
    if name.starts_with(META) {
        return Whiteout::Ignored;
    }
    match name.strip_prefix(WHITEOUT) {
        None => Whiteout::No,
        Some(b"" | b"." | b"..") => Whiteout::Malformed,
        Some(name) => Whiteout::Entry([folder, name].concat()),
    }
}

/// Applies a layer to the tree. `file` is the layer's uncompressed archive. The tree refers to the contents of files in
/// the archive and does not copy them. Only sparse files are copied, to the spool (a temporary file).
pub(super) fn apply(name: &str, file: &Arc<File>, tree: &mut Tree, spool: &mut Spool) -> Result<(), Problem> {
    let of_layer = |source: archive::Error| Problem::Layer { layer: name.to_owned(), source };
    let reader = || {
        let mut file = &**file;
        io::Seek::rewind(&mut file).map(|()| BufReader::with_capacity(1 << 20, file))
    };
    let read = |source: io::Error| of_layer(archive::Error::Read(source));
    let mut malformed = None;
    archive::each(reader().map_err(read)?, LAYER_BYTES_MAX, |entry, records| {
        let path = archive::original_path(entry, records);
        match whiteout(&path) {
            Whiteout::Entry(path) => tree.remove(&path),
            Whiteout::Content(folder) => tree.empty(&folder),
            Whiteout::Malformed if malformed.is_none() => malformed = Some(path.escape_ascii().to_string()),
            Whiteout::No | Whiteout::Ignored | Whiteout::Malformed => {}
        }
        Ok::<(), archive::Error>(())
    })
    .map_err(of_layer)?;
    if let Some(path) = malformed {
        return Err(Problem::Whiteout { layer: name.to_owned(), path });
    }
    let store = Store::InPlace(Arc::clone(file), spool);
    let keep = |path: &[u8]| (whiteout(path) == Whiteout::No).then(|| path.to_vec());
    archive::unpack(reader().map_err(read)?, tree, store, Mode::Layer, keep).map_err(of_layer)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Whiteout, whiteout};

    #[test]
    fn whiteouts_are_told_from_files() {
        let entry = |path: &[u8]| Whiteout::Entry(path.to_vec());
        assert_eq!(whiteout(b"./a/.wh.b"), entry(b"./a/b"));
        assert_eq!(whiteout(b".wh.b"), entry(b"b"));
        assert_eq!(whiteout(b"a/.wh.b/"), entry(b"a/b"));
        assert_eq!(whiteout(b"a/.wh..wh..opq"), Whiteout::Content(b"a/".to_vec()));
        assert_eq!(whiteout(b".wh..wh..opq"), Whiteout::Content(Vec::new()));
        assert_eq!(whiteout(b"a/.wh..wh.plnk"), Whiteout::Ignored);
        assert_eq!(whiteout(b".wh..wh.plnk/12.34"), Whiteout::Ignored);
        for path in [&b"a/.wh."[..], b".wh..", b"a/.wh...", b".wh.a/b", b"a/.wh.b/.wh.c"] {
            assert_eq!(whiteout(path), Whiteout::Malformed, "{path:?}");
        }
        for path in [&b"a/b"[..], b"a/b.wh.c", b".wh/x", b"", b"./", b".wh"] {
            assert_eq!(whiteout(path), Whiteout::No, "{path:?}");
        }
    }
}

//! Reads blobs, the files of which a container image consists. All sources of images implement [`Blobs`].

use std::io::Read;

use super::digest::{Digest, Hashed};
use super::error::{Problem, reading};
use super::resolved_image::ResolvedImage;

/// A source of blobs: a layout, an archive or a registry.
pub(super) trait Blobs {
    /// Opens a blob by its digest. In an archive of Docker's own format, `blob` is the blob's path.
    fn open(&mut self, blob: &str) -> Result<Box<dyn Read + '_>, Problem>;

    /// Opens a manifest or an index by its digest. Registries have a separate address for them.
    fn open_manifest(&mut self, digest: &str) -> Result<Box<dyn Read + '_>, Problem> {
        self.open(digest)
    }

    /// Returns the prefix with which an operator writes `PREFIX:PATH:NAME` for an image of this source.
    fn transport(&self) -> &'static str {
        "oci"
    }

    /// Finds the image with the name `tag`. Without a name, finds the only image.
    fn find(&mut self, tag: Option<&str>) -> Result<ResolvedImage, Problem>;
}

/// Reads a whole blob of at most `most` bytes, and verifies digest and length. `reader` is the open blob.
pub(super) fn read(
    reader: impl Read,
    digest: &Digest,
    bytes: Option<u64>,
    what: &'static str,
    most: u64,
) -> Result<Vec<u8>, Problem> {
    let name = digest.to_string();
    if bytes.is_some_and(|bytes| bytes > most) {
        return Err(Problem::TooLong { what: what.to_owned(), most });
    }
    let mut reader = Hashed::new(reader, digest.hasher());
    let content = read_bounded(&mut reader, what, most)?;
    let found = reader.bytes;
    if let Some(expected) = bytes.filter(|&expected| expected != found) {
        return Err(Problem::Size { blob: name, expected, found });
    }
    let found = reader.finish();
    if found != *digest {
        let what = what.to_owned();
        return Err(Problem::Digest { what, expected: name, found: found.to_string() });
    }
    Ok(content)
}

/// Reads all bytes. Fails if there are more than `most` bytes.
pub(super) fn read_bounded(reader: impl Read, what: &'static str, most: u64) -> Result<Vec<u8>, Problem> {
    let mut content = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut content).map_err(reading(what))?;
    if content.len() as u64 > most {
        return Err(Problem::TooLong { what: what.to_owned(), most });
    }
    Ok(content)
}

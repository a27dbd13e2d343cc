//! Reads archives of container images: tar files in Docker's own format, or with an OCI layout inside.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;

use everett_input::file as input;
use tar::EntryType;

use super::blobs::{self, Blobs};
use super::digest::Digest;
use super::error::{Problem, reading};
use super::limits::IMAGE_BYTES_MAX;
use super::manifest::{self, MANIFEST_BYTES_MAX};
use super::resolved_image::ResolvedImage;
use crate::archive;
use crate::cache::{self, Cache, Key};
use crate::compression::Format;
use crate::space::Metered;
use crate::tree::Content;

/// Maximum number of entries of an archive of an image. Each layer has at most a handful of entries.
pub(super) const ARCHIVE_ENTRIES_MAX: usize = 10_000;

/// Maximum number of links that are followed to find an entry.
const LINKS_FOLLOWED_MAX: usize = 8;

/// Maximum length of a path in the archive, in bytes.
const PATH_BYTES_MAX: usize = 4096;

/// An open archive. Its file is not compressed.
pub(super) struct Archive {
    file: Arc<File>,
    entries: BTreeMap<String, EntryLocation>,
}

/// Location of an entry in the archive.
enum EntryLocation {
    File {
        offset: u64,
        length: u64,
    },
    /// A link to the entry with this path. Some versions of Docker write links in place of repeated layers.
    Link(String),
}

/// Returns the cache key of the image's configuration. The key depends on all bytes of the archive.
pub(super) fn key(path: &Path, tag: Option<&str>) -> Result<Key, Problem> {
    let (mut file, metadata) = input::open(path)?;
    if metadata.len() > IMAGE_BYTES_MAX {
        return Err(Problem::TooLong { what: "the archive".to_owned(), most: IMAGE_BYTES_MAX });
    }
    let (_, digest) = cache::digest(&mut file).map_err(reading(path.display()))?;
    let key = Key::new("oci archive").with(digest);
    Ok(match tag {
        Some(tag) => key.with("tag").with(tag),
        None => key,
    })
}

impl Archive {
    /// Opens an archive. A compressed archive is first decompressed to a temporary file in the cache.
    pub(super) fn open(path: &Path, cache: &Cache) -> Result<Archive, Problem> {
        let failed = |source: io::Error| reading(path.display())(source);
        let (mut file, _) = input::open(path)?;
        let mut start = [0; 6];
        let length = file.read(&mut start).map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        if let Some(format) = Format::detect(&start[..length]) {
            let reader = format.reader_of_all(BufReader::new(file)).map_err(failed)?;
            let folder = cache.temporary();
            let written = |source: io::Error| cache::Error::of(&folder, source);
            let mut unpacked = Metered::new(tempfile::tempfile_in(&folder).map_err(written)?);
            let copied = io::copy(&mut reader.take(IMAGE_BYTES_MAX + 1), &mut unpacked);
            let bytes = copied.map_err(|source| match source.kind() {
                io::ErrorKind::StorageFull => written(source).into(),
                _ => failed(source),
            })?;
            if bytes > IMAGE_BYTES_MAX {
                return Err(Problem::TooLong { what: "the archive".to_owned(), most: IMAGE_BYTES_MAX });
            }
            unpacked.flush().map_err(written)?;
            let mut unpacked = unpacked.into_inner();
            unpacked.seek(SeekFrom::Start(0)).map_err(written)?;
            file = unpacked;
        }
        Archive::of_file(file)
    }

    /// Reads the list of entries of an uncompressed archive.
    pub(super) fn of_file(file: File) -> Result<Archive, Problem> {
        let file = Arc::new(file);
        let mut entries = BTreeMap::new();
        let too_many = || Problem::Document {
            what: "the archive",
            problem: format!("more than {ARCHIVE_ENTRIES_MAX} entries"),
        };
        let mut is_too_long = false;
        archive::each(BufReader::new(&*file), IMAGE_BYTES_MAX, |entry, _| {
            let bytes = entry.path_bytes();
            is_too_long |= entries.len() >= ARCHIVE_ENTRIES_MAX;
            let Some(name) = normal(&bytes).filter(|_| !is_too_long) else {
                return Ok::<(), archive::Error>(());
            };
            let place = match entry.header().entry_type() {
                EntryType::Regular | EntryType::Continuous => {
                    EntryLocation::File { offset: entry.raw_file_position(), length: entry.size() }
                }
                EntryType::Symlink => match entry.link_name_bytes().and_then(|to| beside(&name, &to)) {
                    Some(to) => EntryLocation::Link(to),
                    None => return Ok(()),
                },
                EntryType::Link => match entry.link_name_bytes().and_then(|to| normal(&to)) {
                    Some(to) => EntryLocation::Link(to),
                    None => return Ok(()),
                },
                _ => return Ok(()),
            };
            entries.insert(name, place);
            Ok(())
        })
        .map_err(Problem::Archive)?;
        if is_too_long {
            return Err(too_many());
        }
        Ok(Archive { file, entries })
    }

    fn content(&self, path: &str) -> Option<Content> {
        let mut path = path.to_owned();
        for _ in 0..LINKS_FOLLOWED_MAX {
            match self.entries.get(&path)? {
                EntryLocation::File { offset, length } => {
                    let file = Arc::clone(&self.file);
                    return Some(Content::Span { file, offset: *offset, length: *length });
                }
                EntryLocation::Link(to) => path.clone_from(to),
            }
        }
        None
    }

    fn read(&self, path: &str, what: &'static str) -> Result<Option<Vec<u8>>, Problem> {
        let Some(content) = self.content(path) else { return Ok(None) };
        let reader = content.reader().map_err(reading(what))?;
        blobs::read_bounded(reader, what, MANIFEST_BYTES_MAX).map(Some)
    }
}

impl Blobs for Archive {
    fn transport(&self) -> &'static str {
        "oci-archive"
    }

    fn open(&mut self, blob: &str) -> Result<Box<dyn Read + '_>, Problem> {
        let path = match blob.parse::<Digest>() {
            Ok(digest) => Some(format!("blobs/{}/{}", digest.algorithm(), digest.hex())),
            Err(_) => normal(blob.as_bytes()),
        };
        let content = path.and_then(|path| self.content(&path));
        let content = content.ok_or_else(|| Problem::Missing { blob: shown(blob) })?;
        let Content::Span { file, offset, length } = content else {
            return Err(Problem::Missing { blob: shown(blob) });
        };
        Ok(Box::new(Span { file, offset, left: length }))
    }

    fn find(&mut self, tag: Option<&str>) -> Result<ResolvedImage, Problem> {
        // Recent versions of Docker write both `index.json` and `manifest.json`. Only `index.json` contains the digests
        // of the blobs, so Everett reads it first. If `index.json` lacks the tag, Everett looks for the tag in
        // `manifest.json`, which contains complete names (`redis:7`).
        let saved = self.read("manifest.json", "manifest.json")?;
        let index = match self.content("oci-layout") {
            Some(_) => self.read("index.json", "the index")?,
            None => None,
        };
        match (index, saved) {
            (Some(index), None) => manifest::of_index(self, &index, tag),
            (Some(index), Some(saved)) => match manifest::of_index(self, &index, tag) {
                Err(Problem::NoTag { .. }) => manifest::of_saved(self, &saved, tag),
                found => found,
            },
            (None, Some(saved)) => manifest::of_saved(self, &saved, tag),
            (None, None) => Err(Problem::NoImage),
        }
    }
}

/// A reader of a part of the archive's file. It keeps the file open.
struct Span {
    file: Arc<File>,
    offset: u64,
    left: u64,
}

impl Read for Span {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use std::os::unix::fs::FileExt as _;
        let most = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = self.file.read_at(&mut buffer[..most], self.offset)?;
        self.offset += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

/// Returns at most the first 256 bytes of a path, escaped for messages.
fn shown(path: &str) -> String {
    const SHOWN: usize = 256;
    path.chars().take(SHOWN).collect::<String>().escape_debug().to_string()
}

/// Resolves `.` and `..` in a path of the archive. Returns `None` if the path leads out of the archive.
fn normal(path: &[u8]) -> Option<String> {
    beside("", path)
}

/// Returns the path to which a symbolic link at `link` with the target `to` leads. `None` if it leads out of the
/// archive.
fn beside(link: &str, to: &[u8]) -> Option<String> {
    let to = std::str::from_utf8(to).ok().filter(|to| to.len() <= PATH_BYTES_MAX)?;
    let mut parts: Vec<&str> = link.split('/').collect();
    parts.pop();
    for part in to.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::{beside, normal};

    #[test]
    fn paths_stay_in_the_archive() {
        assert_eq!(normal(b"./a//b/./c").as_deref(), Some("a/b/c"));
        assert_eq!(normal(b"a/../b").as_deref(), Some("b"));
        assert_eq!(normal(b"../b"), None);
        assert_eq!(normal(b"\xff"), None);
        assert_eq!(beside("x/layer.tar", b"../y/layer.tar").as_deref(), Some("y/layer.tar"));
        assert_eq!(beside("x/layer.tar", b"../../y"), None);
    }
}

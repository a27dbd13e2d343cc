//! Contents of regular files.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::space::Metered;

/// The bytes of a regular file.
#[derive(Debug, Clone)]
pub enum Content {
    /// Bytes in memory, for small files that Everett makes.
    Bytes(Arc<[u8]>),
    /// A part of an open file.
    Span {
        /// The open file.
        file: Arc<File>,
        /// Offset of the part in the file.
        offset: u64,
        /// Length of the part in bytes.
        length: u64,
    },
    /// A whole file, which is opened when it is read.
    Path {
        /// Path of the file.
        path: PathBuf,
        /// Length of the file in bytes when it was added to the tree.
        length: u64,
    },
}

impl Content {
    /// Returns content with these bytes.
    #[must_use]
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Content::Bytes(bytes.into())
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        match self {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Span { length, .. } | Content::Path { length, .. } => *length,
        }
    }

    /// Opens the content and returns a reader of its bytes.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub fn reader(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(match self {
            Content::Bytes(bytes) => Box::new(&bytes[..]),
            Content::Span { file, offset, length } => {
                Box::new(SpanReader { file, offset: *offset, left: *length })
            }
            Content::Path { path, length } => Box::new(File::open(path)?.take(*length)),
        })
    }

    /// Returns all bytes of a small file.
    ///
    /// # Errors
    /// Returns an error if the content cannot be read or has more than `bytes_max` bytes.
    pub fn read(&self, bytes_max: u64) -> io::Result<Vec<u8>> {
        if self.length() > bytes_max {
            return Err(io::Error::other(format!("{} bytes; at most {bytes_max} are read", self.length())));
        }
        let mut bytes = Vec::new();
        self.reader()?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

struct SpanReader<'a> {
    file: &'a File,
    offset: u64,
    left: u64,
}

impl Read for SpanReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = self.file.read_at(&mut buffer[..wanted], self.offset)?;
        self.offset += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

/// A nameless temporary file for contents whose source is compressed or temporary. The spool keeps the contents out of
/// memory, so that a large tree takes little memory.
#[derive(Debug)]
pub struct Spool {
    file: Arc<File>,
    writer: BufWriter<Metered>,
    length: u64,
    bytes_max: u64,
}

impl Spool {
    /// Creates a spool in this folder, for at most `bytes_max` bytes.
    ///
    /// # Errors
    /// Returns an error if no file can be created in the folder.
    pub fn new(folder: &Path, bytes_max: u64) -> io::Result<Self> {
        let file = tempfile::tempfile_in(folder)?;
        let writer = BufWriter::with_capacity(1 << 20, Metered::new(file.try_clone()?));
        Ok(Spool { file: Arc::new(file), writer, length: 0, bytes_max })
    }

    /// Appends all bytes of a reader. The returned content can be read after [`Self::flush`].
    ///
    /// # Errors
    /// Returns an error if the bytes cannot be read or written, if the spool exceeds its bound, or if the disk is
    /// almost full.
    pub fn store(&mut self, reader: impl Read) -> io::Result<Content> {
        let offset = self.length;
        let left = self.bytes_max - offset;
        let length = io::copy(&mut reader.take(left.saturating_add(1)), &mut self.writer)?;
        if length > left {
            return Err(io::Error::other(format!(
                "with this file the contents have more than {} bytes",
                self.bytes_max
            )));
        }
        self.length += length;
        Ok(Content::Span { file: Arc::clone(&self.file), offset, length })
    }

    /// Writes all buffered bytes to the file, so that the contents can be read back.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::{Content, Spool};
    use crate::space::tests::on_disk_with;

    #[test]
    fn a_spool_returns_the_stored_contents() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path(), 1 << 30).unwrap();
        let first = spool.store(b"first".as_slice()).unwrap();
        let empty = spool.store(b"".as_slice()).unwrap();
        let second = spool.store(vec![7; 3 << 20].as_slice()).unwrap();
        spool.flush().unwrap();
        assert_eq!(first.read(10).unwrap(), b"first");
        assert_eq!(empty.read(10).unwrap(), b"");
        assert_eq!(second.read(4 << 20).unwrap(), vec![7; 3 << 20]);
        assert!(second.read(10).is_err());
    }

    #[test]
    fn a_spool_leaves_space_on_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path(), 1 << 30).unwrap();
        let error = on_disk_with(0, || spool.store(std::io::repeat(1).take(100 << 20))).unwrap_err();
        assert_eq!(error.to_string(), "less than 256 MiB of the disk are free");
    }

    #[test]
    fn a_file_is_read_from_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "content").unwrap();
        let content = Content::Path { path: path.clone(), length: 4 };
        assert_eq!(content.read(10).unwrap(), b"cont");
        std::fs::remove_file(path).unwrap();
        assert!(content.read(10).is_err());
    }
}

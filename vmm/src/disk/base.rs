//! Base of a disk: the immutable content that reads return for blocks that were never written. All machines that use
//! the base share it.

use std::ops::Range;
use std::sync::Arc;

use super::map::MappedFile;

/// Content of a base. Bytes beyond it are zero.
#[derive(Debug, Clone)]
pub(super) enum Base {
    /// Zeroes only.
    Zero,
    /// Bytes in memory.
    Bytes(Arc<[u8]>),
    /// A mapped file.
    File(Arc<MappedFile>),
    /// Parts of mapped files, sorted by their offset on the disk.
    Parts(Arc<[MappedPart]>),
}

/// Part of a mapped file, and its offset on the disk.
#[derive(Debug, Clone)]
pub(super) struct MappedPart {
    /// The file.
    pub(super) file: Arc<MappedFile>,
    /// Offset of the part in the file.
    pub(super) from: usize,
    /// Offset of the part on the disk.
    pub(super) at: u64,
    /// Length in bytes.
    pub(super) bytes: u64,
}

impl MappedPart {
    /// Returns the content. If the file has become shorter than the part, the content is shorter, too.
    fn content(&self) -> &[u8] {
        let file = self.file.bytes();
        let start = self.from.min(file.len());
        let bytes = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        &file[start..start.saturating_add(bytes).min(file.len())]
    }
}

impl Base {
    /// Calls `visit` for each piece of content in a range, with the piece's offset in the range. Bytes between pieces
    /// are zero.
    fn pieces<'a>(&'a self, offset: u64, len: usize, mut visit: impl FnMut(usize, &'a [u8])) {
        let mut piece = |at: u64, content: &'a [u8]| {
            let end = offset.saturating_add(len as u64);
            let (from, to) = (offset.max(at), end.min(at.saturating_add(content.len() as u64)));
            if from < to {
                // The casts lose nothing, because content and range are in memory.
                visit((from - offset) as usize, &content[(from - at) as usize..(to - at) as usize]);
            }
        };
        match self {
            Base::Zero => {}
            Base::Bytes(content) => piece(0, content),
            Base::File(file) => piece(0, file.bytes()),
            Base::Parts(parts) => {
                let first = parts.partition_point(|part| part.at.saturating_add(part.bytes) <= offset);
                let end = offset.saturating_add(len as u64);
                for part in parts[first..].iter().take_while(|part| part.at < end) {
                    piece(part.at, part.content());
                }
            }
        }
    }

    /// Reads at an offset. Bytes beyond the end of the content are zero.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) {
        let mut zero_from = 0;
        let buf_len = buf.len();
        self.pieces(offset, buf_len, |at, content| {
            buf[zero_from..at].fill(0);
            zero_from = at + content.len();
            buf[at..zero_from].copy_from_slice(content);
        });
        buf[zero_from..].fill(0);
    }

    /// Returns the ranges of a disk of `disk_bytes` bytes at which the base has bytes in memory or in files, sorted.
    pub(super) fn ranges(&self, disk_bytes: u64) -> Vec<Range<u64>> {
        let range = |at: u64, content: &[u8]| at..at.saturating_add(content.len() as u64).min(disk_bytes);
        match self {
            Base::Zero => Vec::new(),
            Base::Bytes(content) => vec![range(0, content)],
            Base::File(file) => vec![range(0, file.bytes())],
            Base::Parts(parts) => parts.iter().map(|part| range(part.at, part.content())).collect(),
        }
    }

    /// True if a range holds a non-zero byte.
    pub(super) fn has_content(&self, offset: u64, len: u64) -> bool {
        let mut found = false;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.pieces(offset, len, |_, content| found = found || content.iter().any(|&byte| byte != 0));
        found
    }

    /// Returns the BLAKE3 digest of the base of a disk of `disk_bytes` bytes. Reads all of the base's files.
    pub(super) fn digest(&self, disk_bytes: u64) -> [u8; 32] {
        let hash = match self {
            Base::Zero => blake3::hash(&disk_bytes.to_le_bytes()),
            Base::Bytes(content) => blake3::hash(content),
            Base::File(file) => blake3::hash(file.bytes()),
            Base::Parts(parts) => {
                let mut hasher = blake3::Hasher::new();
                for part in parts.iter() {
                    hasher.update(part.content());
                }
                hasher.finalize()
            }
        };
        *hash.as_bytes()
    }
}

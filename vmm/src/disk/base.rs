//! Base of a disk: immutable content under the written blocks, shared by all machines that use it.

use std::sync::Arc;

use super::map::MappedFile;

/// Content of a base.
#[derive(Debug, Clone)]
pub(super) enum Base {
    /// Zeroes, for the whole disk.
    Zero,
    /// Bytes in memory.
    Bytes(Arc<[u8]>),
    /// Content of a file, then zeroes up to a whole sector.
    File(Arc<MappedFile>),
}

impl Base {
    fn bytes(&self) -> &[u8] {
        match self {
            Base::Zero => &[],
            Base::Bytes(content) => content,
            Base::File(file) => file.bytes(),
        }
    }

    /// Reads. Bytes beyond the end are zero.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) {
        let content = self.bytes();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let len = buf.len().min(content.len() - start);
        buf[..len].copy_from_slice(&content[start..start + len]);
        buf[len..].fill(0);
    }

    /// True if a range holds a byte other than zero.
    pub(super) fn has_content(&self, offset: u64, len: u64) -> bool {
        let content = self.bytes();
        let end = usize::try_from(offset.saturating_add(len)).unwrap_or(usize::MAX).min(content.len());
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(end);
        content[start..end].iter().any(|&byte| byte != 0)
    }

    /// Returns the blake3 digest of the base of a disk of `disk_bytes` bytes. For a file this reads the whole file.
    pub(super) fn digest(&self, disk_bytes: u64) -> [u8; 32] {
        let hash = match self {
            Base::Zero => blake3::hash(&disk_bytes.to_le_bytes()),
            Base::Bytes(_) | Base::File(_) => blake3::hash(self.bytes()),
        };
        *hash.as_bytes()
    }
}

//! What lies under the written blocks: bytes that never change, shared by every machine that has them.

use std::sync::Arc;

use super::map::MappedFile;

/// A base.
#[derive(Debug, Clone)]
pub(super) enum Base {
    /// Zeroes, as many as the disk has.
    Zero,
    /// These.
    Bytes(Arc<[u8]>),
    /// Those of a file, and zeroes up to a whole sector.
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

    /// Read. What lies beyond the end is zero.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) {
        let content = self.bytes();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let len = buf.len().min(content.len() - start);
        buf[..len].copy_from_slice(&content[start..start + len]);
        buf[len..].fill(0);
    }

    /// Whether there is something else than zeroes in a range.
    pub(super) fn has_content(&self, offset: u64, len: u64) -> bool {
        let content = self.bytes();
        let end = usize::try_from(offset.saturating_add(len)).unwrap_or(usize::MAX).min(content.len());
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(end);
        content[start..end].iter().any(|&byte| byte != 0)
    }

    /// blake3 of it, as the base of a disk of so many bytes. For a file this reads all of it.
    pub(super) fn digest(&self, disk_bytes: u64) -> [u8; 32] {
        let hash = match self {
            Base::Zero => blake3::hash(&disk_bytes.to_le_bytes()),
            Base::Bytes(_) | Base::File(_) => blake3::hash(self.bytes()),
        };
        *hash.as_bytes()
    }
}

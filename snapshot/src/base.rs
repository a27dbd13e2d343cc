//! What lies under an image: its content before anything was written. Immutable, and shared by all that build on it.

use std::fs::File;
use std::sync::Arc;

use crate::file::{BaseDigest, BaseFile};
use crate::page::{PageBytes, PageHash};

/// What lies under an image.
#[derive(Debug)]
pub enum Base {
    /// Zeroes, of any length.
    Zero,
    /// A mapped file.
    File(BaseFile),
}

impl Base {
    /// The content of a page; `None`: zeroes. So is everything beyond the end.
    #[inline]
    pub fn page(&self, index: u64) -> Option<&PageBytes> {
        match self {
            Base::Zero => None,
            Base::File(file) => file.page(index),
        }
    }
    /// The hash of a page that is not zero.
    #[inline]
    pub fn hash(&self, index: u64) -> Option<PageHash> {
        match self {
            Base::Zero => None,
            Base::File(file) => file.hash(index),
        }
    }
    /// How many pages it has. Zeroes have none of their own.
    pub fn pages(&self) -> u64 {
        match self {
            Base::Zero => 0,
            Base::File(file) => file.pages(),
        }
    }
    /// What names it in files; zeroes need no name.
    pub fn digest(&self) -> Option<BaseDigest> {
        match self {
            Base::Zero => None,
            Base::File(file) => Some(file.digest()),
        }
    }
    /// The file and the offset in bytes at which its pages can be mapped, if there is one.
    pub fn mapping(&self) -> Option<(Arc<File>, u64)> {
        match self {
            Base::Zero => None,
            Base::File(file) => Some((Arc::clone(file.file()), file.data_offset())),
        }
    }
    /// The pages that are not zero, ascending.
    pub fn present(&self) -> impl Iterator<Item = u64> + '_ {
        let file = match self {
            Base::Zero => None,
            Base::File(file) => Some(file.present()),
        };
        file.into_iter().flatten()
    }
    /// Whether both have the same content, as far as names tell.
    pub fn same(&self, other: &Base) -> bool {
        std::ptr::eq(self, other) || self.digest() == other.digest()
    }
}

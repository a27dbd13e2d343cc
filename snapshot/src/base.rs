//! Bases: immutable initial contents of images of guest memory or disks. All images that build on a base share it.

use std::fs::File;
use std::sync::Arc;

use crate::file::{BaseDigest, BaseFile};
use crate::page::{PageBytes, PageHash};

/// Initial content of an image.
#[derive(Debug)]
pub enum Base {
    /// Zeroes, for images of any length.
    Zero,
    /// A mapped file.
    File(BaseFile),
}

impl Base {
    /// Returns the content of page number `index`, or `None` if it is all zeroes. Pages beyond the end are zero.
    #[inline]
    pub fn page(&self, index: u64) -> Option<&PageBytes> {
        match self {
            Base::Zero => None,
            Base::File(file) => file.page(index),
        }
    }
    /// Returns the hash of page number `index`, or `None` if the page is all zeroes.
    #[inline]
    pub fn hash(&self, index: u64) -> Option<PageHash> {
        match self {
            Base::Zero => None,
            Base::File(file) => file.hash(index),
        }
    }
    /// Returns the number of pages, which is 0 for [`Base::Zero`].
    pub fn pages(&self) -> u64 {
        match self {
            Base::Zero => 0,
            Base::File(file) => file.pages(),
        }
    }
    /// Returns the digest by which moment files refer to the base. Returns `None` for [`Base::Zero`].
    pub fn digest(&self) -> Option<BaseDigest> {
        match self {
            Base::Zero => None,
            Base::File(file) => Some(file.digest()),
        }
    }
    /// Returns the file, and the offset in bytes at which its pages can be mapped. Returns `None` if the base is not a
    /// file.
    pub fn mapping(&self) -> Option<(Arc<File>, u64)> {
        match self {
            Base::Zero => None,
            Base::File(file) => Some((Arc::clone(file.file()), file.data_offset())),
        }
    }
    /// Iterates over the numbers of pages that are not all zeroes, in ascending order.
    pub fn present(&self) -> impl Iterator<Item = u64> + '_ {
        let file = match self {
            Base::Zero => None,
            Base::File(file) => Some(file.present()),
        };
        file.into_iter().flatten()
    }
    /// True if both bases have the same content: they are the same object or have the same digest.
    pub fn same(&self, other: &Base) -> bool {
        std::ptr::eq(self, other) || self.digest() == other.digest()
    }
}

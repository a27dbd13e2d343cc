//! Immutable pages and their hashes.
//!
//! A page is 4 KiB of content with its blake3, behind a counted reference ([`PageRef`]). Pages are made by a
//! [`Pool`], which stores each content once. A page of zeroes has no [`PageRef`] and no hash.
//!
//! - `pool`: the table of live pages
//!
//! Not here: page numbers.

mod pool;

use std::fmt;

pub use pool::{PageRef, Pool, PoolStats};

/// Size in bytes of a page and of a disk block.
pub const PAGE: usize = 4096;

/// Content of a page.
pub type PageBytes = [u8; PAGE];

/// Content of a zero page.
pub(crate) const ZEROES: &PageBytes = &[0; PAGE];

/// True if all bytes are zero.
#[inline]
pub(crate) fn is_zero(content: &PageBytes) -> bool {
    // Most nonzero pages differ in their first bytes, which avoids the call to memcmp.
    content[..16] == [0; 16] && content == ZEROES
}

/// The blake3 of a page's content. `{}` shows the first eight bytes, `{:#}` all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageHash(pub [u8; 32]);

impl PageHash {
    /// Returns the hash of this content, including for zeroes.
    pub fn of(content: &PageBytes) -> PageHash {
        PageHash(*blake3::hash(content).as_bytes())
    }
    /// Returns the hash of this content, or `None` for zeroes.
    pub fn of_nonzero(content: &PageBytes) -> Option<PageHash> {
        (!is_zero(content)).then(|| PageHash::of(content))
    }
}

impl fmt::Display for PageHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if f.alternate() { 32 } else { 8 };
        self.0[..shown].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
impl fmt::Debug for PageHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageHash({self})")
    }
}
/// Numbered pages, many of which may be zeroes.
pub trait PageSource {
    /// Returns the number of pages.
    fn pages(&self) -> u64;
    /// Iterates over the nonzero pages, ascending by number, each with its hash.
    fn present(&self) -> impl Iterator<Item = (u64, PageHash, &PageBytes)>;
}

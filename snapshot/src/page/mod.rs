//! Immutable pages and their hashes.
//!
//! A page is 4 KiB of content with its BLAKE3 hash, behind a counted reference ([`PageRef`]). A [`Pool`] creates pages
//! and stores each content once. A page of zeroes has no [`PageRef`] and no hash.
//!
//! - `hashes`: hashes of several pages at once
//! - `pool`: the table of live pages
//!
//! A page does not contain its page number. The collections of pages (images and trees) store the numbers.

mod hashes;
mod pool;

use std::fmt;

pub use pool::{PageRef, Pool, PoolStats};

/// Size of a page and of a disk block, in bytes.
pub const PAGE: usize = 4096;

/// Content of a page.
pub type PageBytes = [u8; PAGE];

/// Content of a page of zeroes.
pub(crate) const ZEROES: &PageBytes = &[0; PAGE];

#[inline]
pub(crate) fn is_zero(content: &PageBytes) -> bool {
    // Most nonzero pages have a nonzero byte near the beginning, so this avoids a call to memcmp.
    content[..16] == [0; 16] && content == ZEROES
}

/// BLAKE3 hash of a page's content. `{}` shows its first eight bytes, `{:#}` all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageHash(pub [u8; 32]);

impl PageHash {
    /// Returns the hash of this content, even if it is all zeroes.
    pub fn of(content: &PageBytes) -> PageHash {
        PageHash(*blake3::hash(content).as_bytes())
    }
    /// Returns the hash of this content, or `None` if it is all zeroes.
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
/// Numbered pages of a machine's memory, from which a base file (a file that can be mapped as guest RAM) is written.
/// Many of the pages may be zeroes.
pub trait PageSource {
    /// Returns the number of pages, including pages of zeroes.
    fn pages(&self) -> u64;
    /// Iterates over the nonzero pages in ascending order, with number, hash and content.
    fn present(&self) -> impl Iterator<Item = (u64, PageHash, &PageBytes)>;
}

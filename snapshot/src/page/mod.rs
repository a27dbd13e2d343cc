//! Immutable pages and their hashes.
//!
//! A page is 4 KiB of content with its blake3, behind a counted reference ([`PageRef`]). Pages are made by a [`Pool`], which
//! stores each content once. A page of zeroes is the absence of a page: it has no [`PageRef`] and no hash.
//!
//! - `pool`: the table of pages that are alive
//!
//! Not here: page numbers.

mod pool;

use std::fmt;

pub use pool::{PageRef, Pool, PoolStats};

/// Bytes of a page and of a block of a disk.
pub const PAGE: usize = 4096;

/// The content of a page.
pub type PageBytes = [u8; PAGE];

/// A page of zeroes.
pub(crate) const ZEROES: &PageBytes = &[0; PAGE];

/// Whether a page has nothing but zeroes.
#[inline]
pub(crate) fn is_zero(content: &PageBytes) -> bool {
    // Most pages that are not zero show it in their first bytes, which spares them the call.
    content[..16] == [0; 16] && content == ZEROES
}

/// The blake3 of a page's content. `{}` shows the first eight bytes, `{:#}` all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageHash(pub [u8; 32]);

impl PageHash {
    /// The hash of this content, zeroes included.
    pub fn of(content: &PageBytes) -> PageHash {
        PageHash(*blake3::hash(content).as_bytes())
    }
    /// The hash of this content; zeroes have none.
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
/// Numbered pages of which many may be zeroes.
pub trait PageSource {
    /// Number of pages.
    fn pages(&self) -> u64;
    /// The pages that are not zero, ascending by number, each with its hash.
    fn present(&self) -> impl Iterator<Item = (u64, PageHash, &PageBytes)>;
}

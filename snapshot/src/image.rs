//! Images of memory, or of a disk in 4 KiB blocks: the written pages ([`Tree`]) above the initial content ([`Base`]).
//!
//! Cloning an image takes constant time, so forking a world is cheap. Comparing two images with the same base takes
//! time in proportion to the pages written since the images diverged ([`PageImage::differing`]).
//!
//! **Invariants.** An entry of the tree always differs from the base. A page that gets its initial content back has no
//! entry, and an explicit zero exists only where the base is not zero. All entries have page numbers below `pages`.

use std::fmt;
use std::iter::Peekable;
use std::sync::Arc;

use crate::base::Base;
use crate::page::{PageBytes, PageHash, PageRef, PageSource, Pool, is_zero};
use crate::tree::{Entry, Iter, Tree};

/// Content of a memory or disk, as numbered pages.
#[derive(Clone)]
pub struct PageImage {
    base: Arc<Base>,
    delta: Tree,
    pages: u64,
}

impl PageImage {
    /// Creates an image of `pages` pages of zeroes.
    pub fn zero(pages: u64) -> PageImage {
        PageImage { base: Arc::new(Base::Zero), delta: Tree::new(), pages }
    }
    /// Creates an image that equals a base, with the base's number of pages (0 for [`Base::Zero`]).
    pub fn on(base: Arc<Base>) -> PageImage {
        let pages = base.pages();
        PageImage { base, delta: Tree::new(), pages }
    }
    /// Creates an image with the entries of `delta` above a base. Drops entries that equal the base or are beyond
    /// `pages`.
    pub fn from_parts(base: Arc<Base>, pages: u64, delta: &Tree) -> PageImage {
        let mut image = PageImage { base, delta: Tree::new(), pages };
        for (index, entry) in delta.iter().take_while(|&(index, _)| index < pages) {
            image.put(index, entry.clone());
        }
        image
    }

    /// Returns the number of pages, including pages of zeroes.
    pub fn pages(&self) -> u64 {
        self.pages
    }
    /// Returns the base.
    pub fn base(&self) -> &Arc<Base> {
        &self.base
    }
    /// Returns the pages that differ from the base.
    pub fn delta(&self) -> &Tree {
        &self.delta
    }
    /// Iterates over the entries of [`PageImage::delta`], in ascending order of page numbers.
    pub fn delta_pages(&self) -> Iter<'_> {
        self.delta.iter()
    }

    /// Returns the content of page number `index`, or `None` if it is all zeroes. Pages beyond the end are zero.
    #[inline]
    pub fn page(&self, index: u64) -> Option<&PageBytes> {
        match self.delta.get(index) {
            Some(Entry::Page(page)) => Some(page.bytes()),
            Some(Entry::Zero) => None,
            None => self.base.page(index),
        }
    }
    /// Returns the hash of page number `index`, or `None` if the page is all zeroes.
    #[inline]
    pub fn hash(&self, index: u64) -> Option<PageHash> {
        hash_of(self.delta.get(index), &self.base, index)
    }
    /// Iterates over the nonzero pages in ascending order, with number, hash and content.
    pub fn present(&self) -> impl Iterator<Item = (u64, PageHash, &PageBytes)> {
        Merged { base: self.base.present().peekable(), delta: self.delta.iter().peekable() }
            .filter_map(|index| Some((index, self.hash(index)?, self.page(index)?)))
    }

    /// Sets a page. Returns the hash of its content, or `None` for zeroes.
    ///
    /// # Panics
    /// Panics if `index` is not below [`PageImage::pages`].
    pub fn set(&mut self, pool: &Pool, index: u64, content: &PageBytes) -> Option<PageHash> {
        let hash = PageHash::of_nonzero(content);
        self.set_hashed(pool, index, hash, content);
        hash
    }

    /// Sets a page whose hash the caller knows; `None` means zeroes. The hash is not verified.
    ///
    /// # Panics
    /// Panics if `index` is not below [`PageImage::pages`].
    pub fn set_hashed(&mut self, pool: &Pool, index: u64, hash: Option<PageHash>, content: &PageBytes) {
        assert!(index < self.pages, "page {index} is beyond the end of an image of {} pages", self.pages);
        debug_assert_eq!(hash.is_none(), is_zero(content), "zero pages have no hash, others have one");
        let base = self.base.hash(index);
        let before = match self.delta.get(index) {
            Some(entry) => entry_hash(entry),
            None => base,
        };
        if before == hash {
            // The page already has this content, so nothing needs to be stored.
            return;
        }
        let entry = match hash {
            hash if hash == base => None,
            Some(hash) => pool.intern_hashed(hash, content).map(Entry::Page),
            None => Some(Entry::Zero),
        };
        match entry {
            Some(entry) => self.delta.set(index, entry),
            None => self.delta.remove(index),
        }
    }

    /// Sets an entry. If the entry equals the base, removes it instead.
    pub(crate) fn put(&mut self, index: u64, entry: Entry) {
        let hash = entry_hash(&entry);
        if self.base.hash(index) == hash {
            self.delta.remove(index);
        } else {
            self.delta.set(index, entry);
        }
    }

    /// Returns an image with the same content above another base, which must have the same number of pages.
    #[must_use]
    pub fn over(&self, pool: &Pool, base: &Arc<Base>) -> PageImage {
        assert_eq!(base.pages(), self.pages, "a base of another length");
        let mut image = PageImage { base: Arc::clone(base), delta: Tree::new(), pages: self.pages };
        for (index, hash, content) in self.present() {
            image.set_hashed(pool, index, Some(hash), content);
        }
        for index in base.present() {
            if self.hash(index).is_none() {
                image.delta.set(index, Entry::Zero);
            }
        }
        image
    }

    /// Calls `f` with the number of each page whose content differs, in ascending order. Pages beyond the end of the
    /// shorter image count as zeroes. If both images have the same base, the cost is proportional to the pages written
    /// in either image since they diverged. Otherwise it is proportional to all nonzero pages.
    pub fn differing(&self, other: &PageImage, mut f: impl FnMut(u64)) {
        if self.base.same(&other.base) {
            self.delta.diff(&other.delta, |index, mine, theirs| {
                if hash_of(mine, &self.base, index) != hash_of(theirs, &other.base, index) {
                    f(index);
                }
            });
            return;
        }
        let hashes = |image| PageImage::present(image).map(|(index, hash, _)| (index, hash)).peekable();
        let (mut mine, mut theirs) = (hashes(self), hashes(other));
        loop {
            match (mine.peek().copied(), theirs.peek().copied()) {
                (None, None) => return,
                (Some(a), Some(b)) if a.0 == b.0 => {
                    if a.1 != b.1 {
                        f(a.0);
                    }
                    mine.next();
                    theirs.next();
                }
                (Some(a), b) if b.is_none_or(|b| a.0 < b.0) => {
                    f(a.0);
                    mine.next();
                }
                (_, Some(b)) => {
                    f(b.0);
                    theirs.next();
                }
                (Some(_), None) => return,
            }
        }
    }
}

#[inline]
fn hash_of(entry: Option<&Entry>, base: &Base, index: u64) -> Option<PageHash> {
    match entry {
        Some(entry) => entry_hash(entry),
        None => base.hash(index),
    }
}
fn entry_hash(entry: &Entry) -> Option<PageHash> {
    match entry {
        Entry::Page(page) => Some(PageRef::hash(page)),
        Entry::Zero => None,
    }
}

impl fmt::Debug for PageImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageImage({} pages, {} written, on {:?})", self.pages, self.delta.len(), self.base)
    }
}

/// Iterates over the page numbers of a base and of a tree above it, in ascending order and without duplicates.
struct Merged<'a, B: Iterator<Item = u64>> {
    base: Peekable<B>,
    delta: Peekable<Iter<'a>>,
}

impl<B: Iterator<Item = u64>> Iterator for Merged<'_, B> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let base = self.base.peek().copied();
        let delta = self.delta.peek().map(|&(index, _)| index);
        let next = base.into_iter().chain(delta).min()?;
        if base == Some(next) {
            self.base.next();
        }
        if delta == Some(next) {
            self.delta.next();
        }
        Some(next)
    }
}

impl PageSource for PageImage {
    fn pages(&self) -> u64 {
        self.pages()
    }
    fn present(&self) -> impl Iterator<Item = (u64, PageHash, &PageBytes)> {
        self.present()
    }
}

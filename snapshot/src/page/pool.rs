//! The table of live pages. Equal contents share one page as long as a reference to the page exists.
//!
//! The table is split into shards by hash. Each shard has a lock, which is held only for a lookup, an insertion or a
//! removal. The entries of a shard are weak references. Dropping the last [`PageRef`] of a page removes its entry.
//! Nothing iterates over the table, so its order cannot affect results.
//!
//! **Invariants.**
//! - No strong reference is dropped while a shard is locked, because dropping the last reference would lock the shard
//!   again.
//! - An entry's page may be dying: its last reference is gone, and its removal waits for the lock. A lookup skips this
//!   entry, and a new page of the same content gets a new entry. The dying page removes only its own entry.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hashbrown::HashTable;

use super::{PAGE, PageBytes, PageHash, is_zero};

/// Number of shards, large enough that workers on all cores of a large host seldom wait for each other.
const SHARDS: usize = 64;

/// Store of pages that stores each content once. Clones share the pool, which exists as long as any of its pages.
#[derive(Clone, Default)]
pub struct Pool(Arc<Table>);

/// Number and size of a pool's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStats {
    /// Number of live pages.
    pub pages: u64,
    /// Total size of the contents in bytes, without overhead.
    pub bytes: u64,
}

struct Table {
    shards: [Mutex<HashTable<Slot>>; SHARDS],
    alive: AtomicU64,
}

impl Default for Table {
    fn default() -> Table {
        Table { shards: std::array::from_fn(|_| Mutex::default()), alive: AtomicU64::new(0) }
    }
}

/// Entry of the table. It has a copy of the hash prefix, because the hash of a dying page is no longer accessible.
struct Slot {
    prefix: u64,
    page: Weak<Page>,
}

struct Page {
    /// The content has an allocation of its own, because `Arc::new` would copy it twice.
    content: Box<PageBytes>,
    hash: PageHash,
    home: Arc<Table>,
}

/// Counted reference to a page. Cloning increments the count.
#[derive(Clone)]
pub struct PageRef(Arc<Page>);

impl Pool {
    /// Returns the page with this content, or `None` if the content is all zeroes.
    pub fn intern(&self, content: &PageBytes) -> Option<PageRef> {
        self.intern_hashed(PageHash::of_nonzero(content)?, content)
    }

    /// Returns the page with this content and hash, or `None` if the content is all zeroes. The hash is not verified.
    pub fn intern_hashed(&self, hash: PageHash, content: &PageBytes) -> Option<PageRef> {
        if is_zero(content) {
            return None;
        }
        Some(self.0.find_or_insert(hash, content))
    }

    /// Returns the number and total size of the live pages.
    pub fn stats(&self) -> PoolStats {
        let pages = self.0.alive.load(Ordering::Relaxed);
        PoolStats { pages, bytes: pages * PAGE as u64 }
    }
}

impl Table {
    fn shard(&self, hash: &PageHash) -> MutexGuard<'_, HashTable<Slot>> {
        let shard = &self.shards[usize::from(hash.0[8]) % SHARDS];
        // The table is consistent even if a thread panicked while it held the lock, because a thread makes at most one
        // change (an insertion or a removal) while it holds the lock.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_or_insert(self: &Arc<Table>, hash: PageHash, content: &PageBytes) -> PageRef {
        let prefix = prefix(&hash);
        // Declared before the lock guard, so that these references are dropped after the lock is released.
        let (mut found, mut others) = (None, Vec::new());
        let mut shard = self.shard(&hash);
        shard.find(prefix, |slot| {
            if slot.prefix != prefix {
                return false;
            }
            match slot.page.upgrade() {
                Some(page) if page.hash == hash => found = Some(page),
                Some(page) => others.push(page),
                None => {}
            }
            found.is_some()
        });
        if let Some(page) = found {
            drop(shard);
            if *page.content == *content {
                return PageRef(page);
            }
            // Another content is in the table under this hash, so the caller's hash is wrong. The new page stays
            // outside the table.
            return PageRef(Arc::new(Page::new(self, hash, content)));
        }
        let page = Arc::new(Page::new(self, hash, content));
        shard.insert_unique(prefix, Slot { prefix, page: Arc::downgrade(&page) }, |slot| slot.prefix);
        drop(shard);
        PageRef(page)
    }
}

/// Returns the first part of a page hash, by which the table finds its entries.
fn prefix(hash: &PageHash) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = hash.0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

impl Page {
    fn new(home: &Arc<Table>, hash: PageHash, content: &PageBytes) -> Page {
        home.alive.fetch_add(1, Ordering::Relaxed);
        // A boxed slice is copied into its allocation directly. `Box::new` would first copy the content to the stack.
        let copy: Box<[u8]> = Box::from(&content[..]);
        let content = copy.try_into().unwrap_or_else(|_| Box::new(*content));
        Page { content, hash, home: Arc::clone(home) }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let mut shard = self.home.shard(&self.hash);
        let this: *const Page = self;
        if let Ok(entry) = shard.find_entry(prefix(&self.hash), |slot| slot.page.as_ptr() == this) {
            entry.remove();
        }
        self.home.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PageRef {
    #[inline]
    /// Returns the page's content.
    pub fn bytes(&self) -> &PageBytes {
        &self.0.content
    }
    #[inline]
    /// Returns the BLAKE3 hash of the page's content.
    pub fn hash(&self) -> PageHash {
        self.0.hash
    }
    /// True if both refer to the same page. In one pool, equal contents share one page.
    #[inline]
    pub fn ptr_eq(&self, other: &PageRef) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for PageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageRef({})", self.0.hash)
    }
}
impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} pages)", self.stats().pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(seed: u64) -> PageBytes {
        let mut content = [7; PAGE];
        content[..8].copy_from_slice(&seed.to_le_bytes());
        content
    }

    fn entries(pool: &Pool) -> usize {
        pool.0.shards.iter().map(|shard| shard.lock().unwrap().len()).sum()
    }

    #[test]
    fn equal_pages_are_one() {
        let pool = Pool::default();
        let (a, b, c) = (pool.intern(&page(1)), pool.intern(&page(1)), pool.intern(&page(2)));
        let (a, b, c) = (a.unwrap(), b.unwrap(), c.unwrap());
        assert!(a.ptr_eq(&b) && !a.ptr_eq(&c));
        assert_eq!(a.hash(), PageHash::of(&page(1)));
        assert_eq!(pool.stats(), PoolStats { pages: 2, bytes: 8192 });
        drop(a);
        assert_eq!(b.bytes(), &page(1));
        drop((b, c));
        assert_eq!((pool.stats().pages, entries(&pool)), (0, 0));
    }

    #[test]
    fn zeroes_are_not_stored() {
        let pool = Pool::default();
        assert!(pool.intern(&[0; PAGE]).is_none());
        assert!(pool.intern_hashed(PageHash([1; 32]), &[0; PAGE]).is_none());
        let mut last = [0; PAGE];
        last[PAGE - 1] = 1;
        assert!(pool.intern(&last).is_some());
        assert_eq!(entries(&pool), 0);
    }

    /// A wrong hash never returns the page of another content, and leaves nothing in the table.
    #[test]
    fn hashes_are_confirmed() {
        let pool = Pool::default();
        let first = pool.intern(&page(1)).unwrap();
        let second = pool.intern_hashed(first.hash(), &page(2)).unwrap();
        assert_eq!((first.bytes(), second.bytes()), (&page(1), &page(2)));
        assert_eq!((pool.stats().pages, entries(&pool)), (2, 1));
        drop(second);
        assert!(pool.intern(&page(1)).unwrap().ptr_eq(&first));
        drop(first);
        assert_eq!((pool.stats().pages, entries(&pool)), (0, 0));
    }

    /// The table distinguishes hashes with the same prefix.
    #[test]
    fn prefixes_may_collide() {
        let pool = Pool::default();
        let hash = |last| PageHash(std::array::from_fn(|i| if i == 31 { last } else { 5 }));
        let first = pool.intern_hashed(hash(1), &page(1)).unwrap();
        let second = pool.intern_hashed(hash(2), &page(2)).unwrap();
        assert!(pool.intern_hashed(hash(1), &page(1)).unwrap().ptr_eq(&first));
        assert!(pool.intern_hashed(hash(2), &page(2)).unwrap().ptr_eq(&second));
        assert_eq!(entries(&pool), 2);
    }

    /// Several threads create and drop the same few pages. They see correct contents and leave nothing behind.
    #[test]
    fn hammer() {
        let pool = Pool::default();
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let pool = pool.clone();
                scope.spawn(move || {
                    let mut state = thread + 1;
                    let mut held: [Option<PageRef>; 4] = Default::default();
                    for _ in 0..20_000 {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        let (seed, slot) = (state >> 33 & 7, (state >> 40 & 3) as usize);
                        if state >> 45 & 3 == 0 {
                            held[slot] = None;
                            continue;
                        }
                        let made = pool.intern(&page(seed)).unwrap();
                        assert_eq!(made.bytes(), &page(seed));
                        let again = pool.intern(&page(seed)).unwrap();
                        assert!(made.ptr_eq(&again), "a live page is found again");
                        held[slot] = Some(made);
                    }
                });
            }
        });
        assert_eq!((pool.stats().pages, entries(&pool)), (0, 0));
    }
}

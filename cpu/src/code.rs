//! Decoded and translated code that CPUs can share, and the sizes of their caches. Guests can observe neither.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::decode::cache::Cache;
use crate::translate::Hot;

/// Sizes of the CPU's caches, and which recordings are enabled. The configuration affects the speed of a guest, never
/// its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheConfig {
    /// Entries of the software TLB for each privilege mode. A power of two, at least two.
    pub tlb_entries: usize,
    /// Entries of the block cache. A power of two.
    pub block_entries: usize,
    /// Number of interpreted executions after which a block is translated to host code. `None`: blocks are never
    /// translated.
    pub translate_after: Option<u32>,
    /// True if edges of executed code are recorded ([`crate::Cpu::take_edges`]).
    pub edges: bool,
    /// True if retired conditional branches are counted ([`crate::Cpu::branches`]).
    pub branches: bool,
}

/// Default for [`CacheConfig::translate_after`]: after this many executions a translation pays for itself.
const TRANSLATE_AFTER: u32 = 50;

impl Default for CacheConfig {
    fn default() -> Self {
        CacheConfig {
            tlb_entries: 4096,
            block_entries: 1 << 18,
            translate_after: Some(TRANSLATE_AFTER),
            edges: false,
            branches: false,
        }
    }
}

/// Handle to decoded and translated code. CPUs that execute the same programs can share it, one at a time: while one
/// runs, the others wait. Guests cannot observe the sharing.
#[derive(Debug, Clone)]
pub struct Code {
    caches: CacheConfig,
    known: Arc<Mutex<Known>>,
}

/// Code caches behind a [`Code`].
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) cache: Cache,
    /// Translated blocks. `None` if translation is off.
    pub(crate) hot: Option<Hot>,
}

impl Code {
    /// Creates empty caches.
    pub fn new(caches: CacheConfig) -> Code {
        let known = Known {
            cache: Cache::new(caches.block_entries, caches.edges),
            hot: caches.translate_after.map(Hot::new),
        };
        Code { caches, known: Arc::new(Mutex::new(known)) }
    }
    /// Returns the configuration of these caches.
    pub fn caches(&self) -> CacheConfig {
        self.caches
    }
    pub(crate) fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no CPU has panicked while it ran this code")
    }
}

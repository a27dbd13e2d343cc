//! What is known of code that was executed, and the sizes of what CPUs keep. None of it can be seen by a guest.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::decode::cache::Cache;
use crate::translate::Hot;

/// Sizes of the CPU's caches, and what is noted of the code in them. They change how fast a guest runs, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheConfig {
    /// Entries of the software TLB, for each privilege mode. A power of two, at least two.
    pub tlb_entries: usize,
    /// Entries of the block cache. A power of two.
    pub block_entries: usize,
    /// A block is translated to host code when it was interpreted so often; never, without a number.
    pub translate_after: Option<u32>,
    /// Note the edges of code that are executed ([`crate::Cpu::take_edges`]).
    pub edges: bool,
    /// Count the conditional branches that retire ([`crate::Cpu::branches`]).
    pub branches: bool,
}

/// So often a block is interpreted before a translation is worth its time.
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

/// Decoded and translated code. CPUs that execute the same programs can share it, one at a time: while one runs, the others
/// wait. Nothing that a guest can see depends on who shares it.
#[derive(Debug, Clone)]
pub struct Code {
    caches: CacheConfig,
    known: Arc<Mutex<Known>>,
}

/// What is known of code that was executed.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) cache: Cache,
    /// Nothing is translated without.
    pub(crate) hot: Option<Hot>,
}

impl Code {
    /// No code yet.
    pub fn new(caches: CacheConfig) -> Code {
        let known = Known {
            cache: Cache::new(caches.block_entries, caches.edges),
            hot: caches.translate_after.map(Hot::new),
        };
        Code { caches, known: Arc::new(Mutex::new(known)) }
    }
    /// The sizes that it was made with.
    pub fn caches(&self) -> CacheConfig {
        self.caches
    }
    pub(crate) fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no CPU has panicked while it ran this code")
    }
}

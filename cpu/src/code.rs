//! Code caches (decoded and translated guest code) that several CPUs can share, and their sizes.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::decode::cache::Cache;
use crate::model::CpuModel;
use crate::translate::{Hot, Traces};

/// Sizes of the CPU's caches, and flags that turn on the recording and counting of branches. They change a guest's
/// speed, never its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheConfig {
    /// Entries of the software TLB in each of its two ways, for each privilege mode. A power of two, at least two.
    pub tlb_entries: usize,
    /// Entries of the cache of decoded blocks. A power of two.
    pub block_entries: usize,
    /// Number of interpreted executions after which the CPU translates a block to host code. `None` turns translation
    /// off.
    pub translate_after: Option<u32>,
    /// When blocks are translated together.
    pub traces: Traces,
    /// True if the CPU records which instruction follows each branch ([`crate::Cpu::take_edges`]).
    pub edges: bool,
    /// True if the CPU counts retired conditional branches ([`crate::Cpu::branches`]).
    pub branches: bool,
}

/// Default of [`CacheConfig::translate_after`]. A block that has run this often usually runs so often again that its
/// translation saves more time than it costs.
const TRANSLATE_AFTER: u32 = 16;

impl Default for CacheConfig {
    fn default() -> Self {
        CacheConfig {
            tlb_entries: 2048,
            block_entries: 1 << 18,
            translate_after: Some(TRANSLATE_AFTER),
            traces: Traces::default(),
            edges: false,
            branches: false,
        }
    }
}

/// Handle to the decoded and translated code of one CPU model. CPUs with clones of one handle share the code and take
/// turns: while one CPU runs, it holds a lock on the code. Guests cannot observe the sharing.
#[derive(Debug, Clone)]
pub struct Code {
    caches: CacheConfig,
    model: CpuModel,
    known: Arc<Mutex<Known>>,
}

/// Code caches that all clones of a [`Code`] share.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) cache: Cache,
    /// Translated blocks, or `None` if translation is off.
    pub(crate) hot: Option<Hot>,
}

impl Code {
    /// Creates a handle to empty caches of these sizes, for CPUs of the default model.
    pub fn new(caches: CacheConfig) -> Code {
        Code::of_model(caches, CpuModel::default())
    }
    /// Creates a handle to empty caches of these sizes, for CPUs of a model. The model decides to which instructions
    /// bytes decode.
    pub fn of_model(caches: CacheConfig, model: CpuModel) -> Code {
        let known = Known {
            cache: Cache::new(caches.block_entries, caches.edges, model),
            hot: caches.translate_after.map(|after| Hot::new(after, caches.traces)),
        };
        Code { caches, model, known: Arc::new(Mutex::new(known)) }
    }
    /// Returns the model of the CPUs that run this code.
    pub fn model(&self) -> CpuModel {
        self.model
    }
    /// Returns the configuration that the caches were created with.
    pub fn caches(&self) -> CacheConfig {
        self.caches
    }
    pub(crate) fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no CPU has panicked while it ran this code")
    }
}

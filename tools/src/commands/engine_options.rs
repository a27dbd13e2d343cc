//! Engine options from the switches of the command line.

use everett_host::time;
use everett_session::machines::EngineOptions;
use everett_vmm::engine::soft::FlushSchedule;

use crate::cli::{Hidden, Leak, SoftMode};

/// Mean number of instructions between two flushes of all caches, with `--flush-caches`.
const FLUSH_INTERVAL: u64 = 1_000_000;
/// Minimum number of entries of one of the engine's caches.
const CACHE_ENTRIES_MIN: usize = 16;
/// Maximum number of entries of one of the engine's caches. An entry takes up to 1 KiB of memory.
const CACHE_ENTRIES_MAX: usize = 1 << 20;

/// Error of an invalid cache size.
#[derive(Debug, thiserror::Error)]
#[error("--{0} must be a power of two from {CACHE_ENTRIES_MIN} to {CACHE_ENTRIES_MAX}")]
pub(super) struct CacheSize(&'static str);

/// Returns the options that the switches ask for.
///
/// # Errors
/// Returns an error if a cache size is out of bounds.
pub(super) fn engine_options(hidden: &Hidden) -> Result<EngineOptions, CacheSize> {
    let mut options = EngineOptions::default();
    let size = |n: usize, name| {
        let good = n.is_power_of_two() && (CACHE_ENTRIES_MIN..=CACHE_ENTRIES_MAX).contains(&n);
        if good { Ok(n) } else { Err(CacheSize(name)) }
    };
    match hidden.soft_mode {
        SoftMode::Translate => {}
        SoftMode::Interp => options.caches.translate_after = None,
        SoftMode::Lockstep => options.lockstep = true,
    }
    if let Some(n) = hidden.tlb_entries {
        options.caches.tlb_entries = size(n, "tlb-entries")?;
    }
    if let Some(n) = hidden.block_cache {
        options.caches.block_entries = size(n, "block-cache")?;
    }
    options.flushes = hidden.flush_caches.map(|seed| FlushSchedule { interval: FLUSH_INTERVAL, seed });
    match hidden.plant {
        None => {}
        Some(Leak::HostTime) => options.leak.mmio = Some(time::noise),
        Some(Leak::Lapic) => options.leak.lapic_bit = Some(time::noise),
        Some(Leak::Tlb) => options.stale_translations = true,
        Some(Leak::Panic) => options.panics = true,
    }
    Ok(options)
}

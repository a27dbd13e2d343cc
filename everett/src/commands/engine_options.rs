//! Options of the command line that set how an engine executes.

use everett_host::time;
use everett_session::machines::EngineOptions;
use everett_vmm::engine::soft::FlushSchedule;

/// How Everett's own CPU executes guest code. The mode does not change timelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum SoftMode {
    /// Translate hot code to host code
    #[default]
    Translate,
    /// Interpret all code
    Interp,
    /// Translate and interpret, compare registers and memory all the time, and stop at a difference; tests Everett
    /// itself
    Lockstep,
}

/// Options that set how the engine executes. The hidden options are for tests of Everett. `--plant` plants a defect.
/// The other hidden options set the sizes of caches or flush them, and must not change a timeline.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Hidden {
    /// How Everett's own CPU executes guest code; does not change timelines
    #[arg(long, value_name = "MODE", default_value = "translate")]
    pub soft_mode: SoftMode,
    /// Defect to plant in the engine: nondeterminism, which `everett verify` must find, or a panic
    #[arg(long, hide = true, value_name = "LEAK")]
    pub plant: Option<Leak>,
    /// Size of the soft engine's TLB, in entries
    #[arg(long, hide = true, value_name = "N")]
    pub tlb_entries: Option<usize>,
    /// Size of the soft engine's block cache, in blocks
    #[arg(long, hide = true, value_name = "N")]
    pub block_cache: Option<usize>,
    /// Seed of the random times at which the engine drops all its caches
    #[arg(long, hide = true, value_name = "SEED")]
    pub flush_caches: Option<u64>,
}

/// Defect that tests plant in the engine: nondeterminism or a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Leak {
    /// Add host time to one MMIO read
    HostTime,
    /// Lose a bit of the local APIC's state
    Lapic,
    /// Keep a stale TLB entry
    Tlb,
    /// Panic in the engine at each CPUID
    Panic,
}

/// Mean number of instructions between two flushes of all caches, under `--flush-caches`.
const FLUSH_INTERVAL: u64 = 1_000_000;
/// Minimum size of an engine's cache, in entries.
const CACHE_ENTRIES_MIN: usize = 16;
/// Maximum size of an engine's cache, in entries. An entry takes up to 1 KiB of memory.
const CACHE_ENTRIES_MAX: usize = 1 << 20;

/// Error for an invalid cache size. The field is the name of the option.
#[derive(Debug, thiserror::Error)]
#[error("--{0} must be a power of two from {CACHE_ENTRIES_MIN} to {CACHE_ENTRIES_MAX}")]
pub(super) struct CacheSize(&'static str);

/// Returns the engine options for these switches.
///
/// # Errors
/// Returns an error if a cache size is out of bounds or not a power of two.
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

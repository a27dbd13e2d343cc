//! Bounds of the composer.

/// Maximum number of test commands in a template.
pub const COMMANDS_MAX: usize = 256;
/// Maximum length of a command's name, in bytes. Linux has the same limit for file names.
pub const NAME_BYTES_MAX: usize = 255;
/// Maximum number of nodes in a world.
pub const NODES_MAX: usize = everett_fault::limits::NODES_MAX;

/// Maximum number of parallel drivers that run at a time. Each timeline draws its own limit, from 1 to this number.
pub const PARALLEL_MAX: u8 = 4;
/// Maximum number of `anytime_` commands that run at a time.
pub const ANYTIME_MAX: u8 = 2;
/// Maximum random pause between two starts of commands, in nanoseconds of vtime: 200 ms.
pub const PAUSE_NS_MAX: u64 = 200_000_000;
/// Maximum time for which a drawn command waits until it can start, in nanoseconds of vtime: 10 s.
///
/// After this time the composer starts another command instead. Otherwise a hanging command would block the whole
/// workload as soon as a serial driver is drawn, because a serial driver must run alone.
pub const PATIENCE_NS: u64 = 10_000_000_000;

/// Maximum time for which running commands may finish before `finally_` commands start, in nanoseconds of vtime: 60 s.
pub const FINISH_NS_MAX: u64 = 60_000_000_000;
/// Maximum time until all killed commands have ended, in nanoseconds of vtime: 10 s.
pub const KILL_NS_MAX: u64 = 10_000_000_000;
/// Maximum time for the `eventually_` command, or for all `finally_` commands together, in nanoseconds of vtime: 600 s.
pub const LAST_NS_MAX: u64 = 600_000_000_000;

/// Exclusive bound of run numbers. No timeline lasts long enough to reach it.
pub const RUN_MAX: u64 = 1 << 48;

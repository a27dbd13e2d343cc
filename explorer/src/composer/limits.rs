//! Bounds of test templates, and of the times for which their commands wait and run.

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
/// Maximum random pause before a command starts, in nanoseconds of vtime: 200 ms.
pub const PAUSE_NS_MAX: u64 = 200_000_000;
/// Maximum time for which the next command waits, from its drawn start time until it can start, in nanoseconds of
/// vtime: 10 s.
///
/// After this time another command that can start takes its place. Otherwise a hanging command would block the whole
/// workload as soon as a serial driver is drawn, because a serial driver must run alone.
pub const PATIENCE_NS: u64 = 10_000_000_000;

/// Maximum time that running commands get to end by themselves before `finally_` commands start, in nanoseconds of
/// vtime: 60 s.
pub const FINISH_NS_MAX: u64 = 60_000_000_000;
/// Maximum time for which a timeline waits until all killed commands have ended, in nanoseconds of vtime: 10 s.
pub const KILL_NS_MAX: u64 = 10_000_000_000;
/// Maximum time for the `eventually_` command, or for all `finally_` commands together, in nanoseconds of vtime: 600 s.
pub const LAST_NS_MAX: u64 = 600_000_000_000;

/// Exclusive upper bound of a run's number. Each start of a command is a run, and runs are numbered in the order of
/// their starts. No timeline lasts long enough to reach the bound.
pub const RUN_MAX: u64 = 1 << 48;

//! Bounds of the composer.

/// Maximum number of test commands in a template.
pub const COMMANDS_MAX: usize = 256;
/// Maximum length of a command's name, in bytes, which is that of a file name in Linux.
pub const NAME_BYTES_MAX: usize = 255;
/// Maximum number of nodes in a world.
pub const NODES_MAX: usize = everett_fault::limits::NODES_MAX;

/// Maximum number of parallel drivers at a time. Each timeline draws its own bound, from 1 to this.
pub const PARALLEL_MAX: u8 = 4;
/// Maximum number of `anytime_` commands at a time.
pub const ANYTIME_MAX: u8 = 2;
/// Maximum drawn pause between two starts, in nanoseconds of vtime: 200 ms.
pub const PAUSE_NS_MAX: u64 = 200_000_000;
/// Maximum time for which a drawn command waits until it can start, in nanoseconds of vtime: 10 s. After that, a
/// command that can start takes its place. Otherwise a command that hangs would block the whole workload once a serial
/// driver is drawn.
pub const PATIENCE_NS: u64 = 10_000_000_000;

/// Maximum time for commands to end by themselves before `finally_` commands, in nanoseconds of vtime: 60 s.
pub const FINISH_NS_MAX: u64 = 60_000_000_000;
/// Maximum time until killed commands are gone, in nanoseconds of vtime: 10 s.
pub const KILL_NS_MAX: u64 = 10_000_000_000;
/// Maximum time for the `eventually_` command, or for all `finally_` commands together, in nanoseconds of vtime: 600 s.
pub const LAST_NS_MAX: u64 = 600_000_000_000;

/// Highest number of a run. No timeline lasts long enough to reach it.
pub const RUN_MAX: u64 = 1 << 48;

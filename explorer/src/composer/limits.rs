//! Every bound of the composer, by name.

/// The most test commands of a template.
pub const COMMANDS_MAX: usize = 256;
/// The most bytes of a command's name: those of a file name in Linux.
pub const NAME_BYTES_MAX: usize = 255;
/// The most nodes of a world.
pub const NODES_MAX: usize = everett_fault::limits::NODES_MAX;

/// The most parallel drivers at a time. Each timeline draws its own bound, from 1 to this.
pub const PARALLEL_MAX: u8 = 4;
/// The most `anytime_` commands at a time.
pub const ANYTIME_MAX: u8 = 2;
/// The longest drawn pause between two starts, in nanoseconds of vtime: 200 ms.
pub const PAUSE_NS_MAX: u64 = 200_000_000;
/// How long a drawn command waits until it can start, in nanoseconds of vtime: 10 s. Then one that can start goes first: a command
/// that hangs must not keep the whole workload waiting for the one that is to be alone.
pub const PATIENCE_NS: u64 = 10_000_000_000;

/// How long commands may take to finish by themselves before `finally_` ones, in nanoseconds of vtime: 60 s.
pub const FINISH_NS_MAX: u64 = 60_000_000_000;
/// How long it may take until all that was to be killed is gone, in nanoseconds of vtime: 10 s.
pub const KILL_NS_MAX: u64 = 10_000_000_000;
/// How long the `eventually_` command, or all `finally_` ones together, may take, in nanoseconds of vtime: 600 s.
pub const LAST_NS_MAX: u64 = 600_000_000_000;

/// The highest number of a run. Timelines end long before.
pub const RUN_MAX: u64 = 1 << 48;

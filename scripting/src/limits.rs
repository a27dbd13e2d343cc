//! Bounds of calls.

/// Maximum vtime for which one call lets a fork run, in nanoseconds: one hour.
pub const RUN_NS_MAX: u64 = 3_600_000_000_000;
/// Maximum length of memory that one call reads, in bytes.
pub const READ_BYTES_MAX: u64 = 64 << 20;
/// Maximum length of each stream of a command's output, in bytes. The rest is dropped, and the result says so.
pub const OUTPUT_BYTES_MAX: usize = 16 << 20;
/// Maximum number of events of a span that are kept. Later ones are an error.
pub const EVENTS_MAX: usize = 2_000_000;
/// Maximum size of the events of a span in memory, in bytes.
pub const EVENT_BYTES_MAX: usize = 512 << 20;
/// Maximum number of outcomes of frames of a span that are kept.
pub const MESSAGES_MAX: usize = 2_000_000;
/// Maximum number of arguments of a command.
pub const ARGUMENTS_MAX: usize = 1_000;
/// Maximum length of the arguments of a command, in bytes.
pub const ARGUMENT_BYTES_MAX: usize = 64 << 10;
/// Maximum length of the standard input of a command, in bytes.
pub const INPUT_BYTES_MAX: usize = 128 << 10;

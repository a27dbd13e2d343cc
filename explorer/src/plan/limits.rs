//! Every bound of a plan, by name.

/// The most bytes of a plan.
pub const PLAN_BYTES_MAX: usize = 8 << 20;
/// The most lines of a plan, empty ones and comments among them.
pub const LINES_MAX: usize = 20_000;
/// The most bytes of a line, without its end.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// The latest time at which something may start, in nanoseconds after *ready*: a day.
pub const AT_NS_MAX: u64 = 86_400_000_000_000;
/// The longest that something may last, in nanoseconds: a day.
pub const FOR_NS_MAX: u64 = 86_400_000_000_000;
/// The most errors that are told of at once.
pub const ERRORS_MAX: usize = 20;
/// The most network faults at a time: as many as a wire is under.
pub const NETWORK_FAULTS_MAX: usize = everett_fault::limits::NETWORK_FAULTS_MAX;

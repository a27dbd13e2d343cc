//! Bounds of a fault plan: a text with one entry per line, for example a fault with its start and duration.

/// Maximum size of a plan, in bytes.
pub const PLAN_BYTES_MAX: usize = 8 << 20;
/// Maximum number of lines, including empty lines and comments.
pub const LINES_MAX: usize = 20_000;
/// Maximum length of a line without its line feed, in bytes.
pub const PLAN_LINE_BYTES_MAX: usize = 64 << 10;
/// Latest start of an entry, in nanoseconds after all services of the world are up: one day.
pub const AT_NS_MAX: u64 = 86_400_000_000_000;
/// Maximum duration of an entry, in nanoseconds: one day.
pub const FOR_NS_MAX: u64 = 86_400_000_000_000;
/// Maximum number of errors that are reported at once.
pub const ERRORS_MAX: usize = 20;
/// Maximum number of simultaneous network faults. The simulated wire has the same limit.
pub const NETWORK_FAULTS_MAX: usize = everett_fault::limits::NETWORK_FAULTS_MAX;

//! Every bound on histories, by name.

/// The most bytes of a line. Who cuts lines from a stream cuts them here.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// The most operations of a history. What comes after them is not read.
pub const OPERATIONS_MAX: usize = 1_000_000;
/// The most bytes that a history keeps, roughly. What comes after them is not read.
pub const HISTORY_BYTES_MAX: u64 = 1 << 29;
/// The most problems that are told of; the others are counted.
pub const PROBLEMS_MAX: usize = 100;
/// The most acknowledged writes that are told to be lost; the others are counted.
pub const LOST_MAX: usize = 100;
/// The most violations that are followed up to their earliest completion; the others tell where the search ended.
pub const FOLLOWED_MAX: usize = 64;
/// The most of the operations before a violation that its evidence lists.
pub const ORDER_SHOWN_MAX: usize = 8;
/// The most possibilities that evidence lists.
pub const POSSIBLE_MAX: usize = 8;
/// The most characters of a value or name that is told.
pub const QUOTED_CHARS_MAX: usize = 48;
/// Steps of search that suffice for all but histories that are wide open.
pub const STEPS_MAX: u64 = 20_000_000;
/// Bytes for the configurations that one search has seen.
pub const CACHE_BYTES_MAX: u64 = 256 << 20;

//! Every bound on histories, by name.

/// The most bytes of a line. Code that splits a stream into lines cuts them here.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// The most operations of a history; later ones are not read.
pub const OPERATIONS_MAX: usize = 1_000_000;
/// The approximate memory of a history, in bytes; lines beyond it are not read.
pub const HISTORY_BYTES_MAX: u64 = 1 << 29;
/// The most problems that are listed; the others are counted.
pub const PROBLEMS_MAX: usize = 100;
/// The most lost writes that are listed; the others are counted.
pub const LOST_MAX: usize = 100;
/// The most violations that are traced to their first completion; the others report where the search ended.
pub const FOLLOWED_MAX: usize = 64;
/// The most operations before a violation that its evidence lists.
pub const ORDER_SHOWN_MAX: usize = 8;
/// The most possible states that evidence lists.
pub const POSSIBLE_MAX: usize = 8;
/// The most characters of a reported value or name.
pub const QUOTED_CHARS_MAX: usize = 48;
/// Steps of a search. They suffice for all histories but those with very many concurrent operations.
pub const STEPS_MAX: u64 = 20_000_000;
/// Bytes for the configurations that one search has visited.
pub const CACHE_BYTES_MAX: u64 = 256 << 20;

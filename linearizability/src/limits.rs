//! Every bound on histories, by name.

/// Maximum length of a reported value or name, in characters.
pub use everett_input::text::QUOTED_CHARS_MAX;

/// Maximum length of a line, in bytes. The session cuts lines to `HISTORY_LINE_BYTES_MAX` of the protocol, which is the
/// same.
pub const HISTORY_LINE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of operations of a history. Later ones are not read.
pub const OPERATIONS_MAX: usize = 1_000_000;
/// Maximum memory of a history, in bytes, approximately. Lines beyond it are not read.
pub const HISTORY_BYTES_MAX: u64 = 1 << 29;
/// Maximum number of problems that are listed. Further ones are only counted.
pub const PROBLEMS_MAX: usize = 100;
/// Maximum number of lost writes that are listed. Further ones are only counted.
pub const LOST_MAX: usize = 100;
/// Maximum number of violations that are traced to the first impossible completion. Further ones report the operation
/// at which the search got stuck.
pub const FOLLOWED_MAX: usize = 64;
/// Maximum number of operations in each list of a violation's evidence.
pub const ORDER_SHOWN_MAX: usize = 8;
/// Maximum number of possible states that evidence lists.
pub const POSSIBLE_MAX: usize = 8;
/// Default number of search steps. It suffices for all histories except those with very many concurrent operations.
pub const STEPS_MAX: u64 = 20_000_000;
/// Default memory for the configurations that a search has visited and the choices that it keeps, in bytes.
pub const CACHE_BYTES_MAX: u64 = 256 << 20;

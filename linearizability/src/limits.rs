//! Bounds of histories and of their check.

/// Maximum length of a reported value or name, in characters.
pub use everett_input::text::QUOTED_CHARS_MAX;

/// Maximum length of a line, in bytes. Longer lines are cut when they arrive from the guest. The protocol between
/// Everett and its program in guests has a constant of the same name, with the same value.
pub const HISTORY_LINE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of operations of a history. Later operations are not read.
pub const OPERATIONS_MAX: usize = 1_000_000;
/// Approximate maximum memory of a history, in bytes. After a history has reached it, no more lines are read.
pub const HISTORY_BYTES_MAX: u64 = 1 << 29;
/// Maximum number of errors that are listed. Further errors are only counted.
pub const PROBLEMS_MAX: usize = 100;
/// Maximum number of lost writes that are listed. Further lost writes are only counted.
pub const LOST_MAX: usize = 100;
/// Maximum number of violations that are traced to their first impossible completion, i.e. to the first result that no
/// order of the operations explains. For further violations, the report names the operation at which the search got
/// stuck.
pub const FOLLOWED_MAX: usize = 64;
/// Maximum number of operations in each list of a violation's evidence.
pub const ORDER_SHOWN_MAX: usize = 8;
/// Maximum number of states that evidence lists: the states in which the history's object can be before a violation.
pub const POSSIBLE_MAX: usize = 8;
/// Default number of search steps. It suffices unless very many operations are concurrent.
pub const STEPS_MAX: u64 = 20_000_000;
/// Default memory for the visited configurations and for the choices not yet tried, in bytes.
pub const CACHE_BYTES_MAX: u64 = 256 << 20;

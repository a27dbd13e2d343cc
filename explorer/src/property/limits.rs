//! Bounds of properties. For their regular expressions, `REGEX_BYTES_MAX` and `REGEX_SIZE_MAX` in `crate::pattern`
//! apply.

pub use crate::coverage::limits::TEMPLATE_LINE_BYTES_MAX;
pub use crate::pattern::{REGEX_BYTES_MAX, REGEX_SIZE_MAX};

/// Maximum number of properties that a world declares.
pub const PROPERTIES_MAX: usize = 64;
/// Maximum length of a property's name, in bytes. Everett refuses a declaration with a longer name. If a violation is
/// reported under a longer name, the name is cut.
pub const NAME_BYTES_MAX: usize = 64;
/// Maximum length of the description of a violation, in bytes.
pub const VIOLATED_BYTES_MAX: usize = 128;
/// Maximum length of a name pattern that selects units (services, drivers, checks), in bytes.
pub const UNIT_BYTES_MAX: usize = 64;
/// Maximum length of the text of a hit (a violation that was found), in bytes. Longer texts are cut.
pub const TEXT_BYTES_MAX: usize = 1024;
/// Maximum number of reported hits (violations with different signatures) on a path from the root moment. Further hits
/// are only counted. A signature is a hash of the hit's text without numbers, times and names of nodes.
pub const HITS_MAX: usize = 1024;
/// Maximum number of hits of one property among the [`HITS_MAX`] hits, so that a noisy property leaves room for other
/// properties.
pub const HITS_OF_PROPERTY_MAX: usize = 64;

/// Maximum number of lines in a log record of several lines, e.g. a stack trace. A record with more lines ends there.
pub const RECORD_LINES_MAX: usize = 128;
/// Time without a further line after which a log record ends, in nanoseconds of vtime.
pub const RECORD_PAUSE_NS: u64 = 100_000_000;
/// Maximum number of log records of several lines that are open (not yet ended) at a time. Each line of a further
/// record is judged on its own.
pub const RECORDS_MAX: usize = 16;

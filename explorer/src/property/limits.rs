//! Bounds of properties. For their regular expressions, `REGEX_BYTES_MAX` and `REGEX_SIZE_MAX` in `crate::pattern`
//! apply.

pub use crate::coverage::limits::TEMPLATE_LINE_BYTES_MAX;
pub use crate::pattern::{REGEX_BYTES_MAX, REGEX_SIZE_MAX};

/// Maximum number of properties that a world declares.
pub const PROPERTIES_MAX: usize = 64;
/// Maximum length of a property's name, in bytes. A longer name in a declaration is refused. A longer name that is
/// passed to the judge is cut.
pub const NAME_BYTES_MAX: usize = 64;
/// Maximum length of the description of a violation, in bytes.
pub const VIOLATED_BYTES_MAX: usize = 128;
/// Maximum length of a pattern of units, in bytes.
pub const UNIT_BYTES_MAX: usize = 64;
/// Maximum length of a hit's text, in bytes. Longer texts are cut.
pub const TEXT_BYTES_MAX: usize = 1024;
/// Maximum number of hits on a path from the root moment, and of remembered signatures. Further hits are only counted.
pub const HITS_MAX: usize = 1024;
/// Maximum number of hits of one property among the [`HITS_MAX`] hits, so that a noisy property leaves room for other
/// properties.
pub const HITS_OF_PROPERTY_MAX: usize = 64;

/// Maximum number of lines in a record of several lines, e.g. a stack trace. A longer record is cut there.
pub const RECORD_LINES_MAX: usize = 128;
/// Time without a further line after which a record ends, in nanoseconds of vtime.
pub const RECORD_PAUSE_NS: u64 = 100_000_000;
/// Maximum number of records of several lines that are open at a time. The lines of further records are judged one by
/// one.
pub const RECORDS_MAX: usize = 16;

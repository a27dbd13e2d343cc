//! Bounds of properties. Those of expressions are `REGEX_BYTES_MAX` and `REGEX_SIZE_MAX`.

pub use crate::coverage::limits::TEMPLATE_LINE_BYTES_MAX;
pub use crate::pattern::{REGEX_BYTES_MAX, REGEX_SIZE_MAX};

/// Maximum number of properties that a world declares.
pub const PROPERTIES_MAX: usize = 64;
/// Maximum length of a property's name, in bytes. A declared name that is longer is refused; a name that is passed to
/// the judge is cut.
pub const NAME_BYTES_MAX: usize = 64;
/// Maximum length of the words for a violation, in bytes.
pub const VIOLATED_BYTES_MAX: usize = 128;
/// Maximum length of a pattern for units, in bytes.
pub const UNIT_BYTES_MAX: usize = 64;
/// Maximum length of a hit's text, in bytes. Longer texts are cut.
pub const TEXT_BYTES_MAX: usize = 1024;
/// Maximum number of hits, and of remembered signatures, on a path from the root. Further hits are only counted.
pub const HITS_MAX: usize = 1024;
/// Maximum number of hits of one property among the [`HITS_MAX`] hits, so that a noisy property leaves room for others.
pub const HITS_OF_PROPERTY_MAX: usize = 64;

/// Maximum number of lines of a record. A record that is longer ends there.
pub const RECORD_LINES_MAX: usize = 128;
/// Time without a further line after which a record has ended, in nanoseconds of vtime.
pub const RECORD_PAUSE_NS: u64 = 100_000_000;
/// Maximum number of open records. Further records are judged line by line.
pub const RECORDS_MAX: usize = 16;

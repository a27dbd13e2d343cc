//! Every bound of properties, by name. Those of expressions are `REGEX_BYTES_MAX` and `REGEX_SIZE_MAX`.

pub use crate::coverage::limits::LINE_BYTES_MAX;
pub use crate::pattern::{REGEX_BYTES_MAX, REGEX_SIZE_MAX};

/// The most properties that a world declares.
pub const PROPERTIES_MAX: usize = 64;
/// The most bytes of a property's name. One that the caller gives is clipped to them.
pub const NAME_BYTES_MAX: usize = 64;
/// The most bytes of a pattern for units.
pub const UNIT_BYTES_MAX: usize = 64;
/// The most bytes of a hit's text; longer ones are clipped.
pub const TEXT_BYTES_MAX: usize = 1024;
/// The most hits of a path from the root, which are also the most signatures that it remembers; others are counted.
pub const HITS_MAX: usize = 1024;
/// The most hits of one property among these, so that a noisy one leaves room for others.
pub const HITS_OF_PROPERTY_MAX: usize = 64;

//! Bounds of the SDK's lines. JSON is at most 128 levels deep, which is `serde_json`'s own bound.

/// Maximum length of a line, in bytes. Longer lines are errors.
pub const SDK_LINE_BYTES_MAX: usize = 256 << 10;
/// Maximum length of the name of an assertion, a guidance or a module with edges, in bytes. A longer one ends in its
/// hash.
pub const NAME_BYTES_MAX: usize = 64;
/// Maximum length of an assertion's details and place as evidence, in bytes; the rest is cut.
pub const EVIDENCE_BYTES_MAX: usize = 800;
/// Maximum length of a value of guidance as text, in bytes. A longer one ends in its hash.
pub const VALUE_BYTES_MAX: usize = 256;
/// Maximum number of assertions of a timeline. Further ones are not counted; failures are findings all the same.
pub const ASSERTIONS_MAX: usize = 4096;
/// Maximum number of guidances of a timeline. Further ones are ignored.
pub const GUIDANCES_MAX: usize = 1024;
/// Longest quiet period, in seconds: a day.
pub const QUIET_S_MAX: f64 = 86_400.0;

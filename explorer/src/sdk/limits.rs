//! Bounds of the JSON lines that programs send to Everett through the SDK. `serde_json` also limits the nesting of JSON
//! to 128 levels.

/// Maximum length of a line, in bytes. Longer lines are errors.
pub const SDK_LINE_BYTES_MAX: usize = 256 << 10;
/// Maximum length of the name of an assertion, a guidance (a value that a program reports to guide the explorer) or an
/// instrumented module, in bytes. A longer name is cut and ends in its hash.
pub const NAME_BYTES_MAX: usize = 64;
/// Maximum length of the evidence of a violation, in bytes: the assertion's kind, name, position and details as one
/// line. A longer line is cut.
pub const EVIDENCE_BYTES_MAX: usize = 800;
/// Maximum length of a guidance's value as text, in bytes. A longer value is cut and ends in its hash.
pub const VALUE_BYTES_MAX: usize = 256;
/// Maximum number of assertions that a timeline counts. Violations of further assertions are still findings.
pub const ASSERTIONS_MAX: usize = 4096;
/// Maximum number of guidances of a timeline. Further guidances are ignored.
pub const GUIDANCES_MAX: usize = 1024;
/// Maximum length of a quiet period, in seconds: one day. A quiet period is a time without faults, for which a program
/// asks.
pub const QUIET_S_MAX: f64 = 86_400.0;

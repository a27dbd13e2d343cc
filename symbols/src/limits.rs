//! Bounds on the tables of functions of Go programs.

/// Maximum number of functions in the table of a Go program. A larger table is not used.
pub(crate) const GO_FUNCTIONS_MAX: usize = 4 << 20;
/// Maximum number of steps of tables of values that are read for a stack. Frames without a step have no caller or no line.
pub(crate) const GO_STEPS_MAX: usize = 1 << 22;
/// Maximum length of the path of a source file in the table of a Go program, in bytes.
pub(crate) const GO_PATH_BYTES_MAX: usize = 4_096;

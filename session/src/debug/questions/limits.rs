//! Bounds on what is kept of a guest while a question is answered.

/// Maximum number of system calls of all threads that have begun and not ended. More are not reported.
pub const PENDING_CALLS_MAX: usize = 131_072;
/// Maximum number of files with writes that no call has made durable. Writes to more are left out, and counted.
pub const WRITTEN_FILES_MAX: usize = 65_536;

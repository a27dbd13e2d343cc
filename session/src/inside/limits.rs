//! Bounds on what a throw-away fork keeps and reads.

/// Maximum number of events of a fork that wait for its caller. The oldest are dropped first.
pub const EVENTS_MAX: usize = 10_000;
/// Maximum number of outcomes of frames of a fork that wait for its caller. The oldest are dropped first.
pub const MESSAGES_MAX: usize = 10_000;
/// Vtime within which an agent must answer a request that it can carry out at once, in nanoseconds: ten seconds.
pub const ANSWER_NS_MAX: u64 = 10_000_000_000;
/// Maximum length of a program's own error output that an error quotes, in bytes.
pub const COMPLAINT_BYTES_MAX: usize = 4096;
/// Maximum number of pages of mapped files that are looked up in order to find one in memory. Without one, the pages that a
/// process has not touched are unmapped.
pub const COMPARED_PAGES_MAX: u64 = 1 << 18;
/// Default of the maximum length of all files that are copied, in bytes.
pub const COPY_BYTES_MAX: u64 = 1 << 30;
/// Maximum number of files, folders and links that are copied or listed.
pub const ENTRIES_MAX: usize = 1_000_000;
/// Maximum depth of nested folders that are copied.
pub const DEPTH_MAX: usize = 260;
/// Maximum number of files with several names that are copied as links to each other.
pub const LINKED_MAX: usize = 100_000;
/// Maximum number of files that cannot be copied. Copying ends with an error at the next one.
pub const LEFT_OUT_MAX: usize = 1000;
/// Maximum length of the name of a file, in bytes (Linux's `NAME_MAX`).
pub const NAME_BYTES_MAX: usize = 255;
/// Maximum length of a path or of a link's target, in bytes (Linux's `PATH_MAX` without the final zero).
pub const PATH_BYTES_MAX: usize = 4095;
/// Maximum length of the files of `/proc` that a guest sends about its processes, in bytes.
pub const PROC_BYTES_MAX: usize = 64 << 20;
/// Vtime within which a guest must have sent these files, in nanoseconds: ten seconds.
pub const PROC_NS_MAX: u64 = 10_000_000_000;
/// Maximum length of the facts about processes that are kept while a guest says them, in bytes.
pub const SEEN_BYTES_MAX: usize = 256 << 20;

//! Bounds of a debugger.

/// Maximum number of entries (events, messages and changes of state variables) that are listed of a timeline. Later ones
/// are left out, and moves to them are refused.
pub const ENTRIES_MAX: usize = 1 << 20;
/// Maximum length of the texts of all entries, in bytes. Later entries are left out.
pub const ENTRY_BYTES_MAX: usize = 512 << 20;
/// Maximum memory of the data of all messages, in bytes. The data of later messages is not known.
pub const CONTENT_BYTES_MAX: usize = 256 << 20;
/// Memory of the data of a frame besides its bytes, in bytes.
pub const CONTENT_ENTRY_BYTES: usize = 96;
/// Maximum number of parts of all streams of a timeline that are compared. The comparison ends there.
pub const PARTS_MAX: usize = 4 << 20;
/// Maximum number of parts of a stream that are compared. The comparison ends there.
pub const STREAM_PARTS_MAX: usize = 1 << 20;
/// Maximum number of breakpoints and watchpoints.
pub const BREAKPOINTS_MAX: usize = 64;
/// Maximum number of addresses of all breakpoints on a node.
pub const ADDRESSES_MAX: usize = 65_536;
/// Maximum length of the memory that a command prints, in bytes.
pub const MEMORY_BYTES_MAX: usize = 4_096;
/// Maximum number of entries that a command prints.
pub const LISTED_MAX: usize = 10_000;
/// Number of bytes of a text or buffer that is shown of a system call.
pub const STRING_BYTES: usize = 32;
/// Number of bytes of a message's data that are shown.
pub const SHOWN_BYTES: usize = 64;
/// Maximum number of threads of which stacks are printed at once.
pub const THREADS_MAX: usize = 4_096;
/// Number of bytes at the beginning of a text that are compared between timelines without numbers.
pub const COMPARED_BYTES: usize = 16 << 10;

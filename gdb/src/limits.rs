//! Bounds of a session with gdb.

/// Maximum number of breakpoints and of watchpoints.
pub const POINTS_MAX: usize = 1024;
/// Maximum size of a packet of gdb's, in bytes. gdb learns it when it connects. A longer packet ends the session.
pub const PACKET_BYTES_MAX: usize = 4096;
/// Maximum number of bytes of memory that a packet can ask for. gdb asks for no more, because an answer has two digits for a
/// byte.
pub const READ_BYTES_MAX: usize = PACKET_BYTES_MAX / 2;

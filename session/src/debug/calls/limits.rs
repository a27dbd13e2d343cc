//! Bounds on what is read from a program for one system call.

/// Maximum length of a text or buffer that is shown, in bytes. Longer ones are cut off.
pub const STRING_BYTES_MAX: usize = 65_536;
/// Maximum number of parts of a message, polled files, events and arguments of a program that are shown for a system call.
pub const ITEMS_MAX: usize = 64;
/// Maximum length of an address of a socket, in bytes (Linux, `sockaddr_storage`).
pub const SOCKET_ADDRESS_BYTES_MAX: usize = 128;
/// Maximum length of a path that a program passes, in bytes: the kernel's `PATH_MAX`.
pub const PATH_ARGUMENT_BYTES_MAX: usize = 4_096;

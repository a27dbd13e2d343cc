//! Bounds of the protocol.

/// Maximum length of a line on the control port, in bytes, without its newline.
pub const CONTROL_LINE_BYTES_MAX: usize = 1 << 20;

/// Maximum length of a service's output line, in bytes. A longer line is cut and has [`crate::Output::truncated`] set.
pub const LOG_TEXT_BYTES_MAX: usize = 1 << 20;

/// Maximum length of a line on the log port, in bytes, without its newline. JSON needs up to six bytes for one byte of
/// text (`\u0001`). The other fields of an [`crate::Output`] need less than 4096 bytes.
pub const LOG_LINE_BYTES_MAX: usize = 6 * LOG_TEXT_BYTES_MAX + 4096;

/// Maximum length of a command's output line on the control port, in bytes. Even if JSON escapes every byte, a line of
/// this length fits the port.
pub const EXEC_TEXT_BYTES_MAX: usize = CONTROL_LINE_BYTES_MAX / 8;

/// Maximum length of a line on the history port, in bytes, without its newline. Everett cuts longer lines.
pub const HISTORY_LINE_BYTES_MAX: usize = 1 << 20;

/// Maximum number of names in one [`crate::Reply::Names`].
pub const LISTED_NAMES_MAX: usize = 4096;

/// Maximum total length of the names in one [`crate::Reply::Names`], in bytes. Even if JSON escapes every byte, names
/// of this total length fit the control port.
pub const LISTED_BYTES_MAX: usize = CONTROL_LINE_BYTES_MAX / 8;

/// Maximum number of bytes of file content in one [`crate::PutFile`]. The host sends a longer file in pieces.
pub const PUT_FILE_BYTES_MAX: usize = 512 << 10;

/// Minimum length of entropy in a request, in bytes. The kernel considers its generator seeded after 256 bits.
pub const ENTROPY_BYTES_MIN: usize = 32;

/// Maximum length of entropy in a request ([`crate::Operation::Reseed`], [`crate::Join`]), in bytes.
pub const ENTROPY_BYTES_MAX: usize = 512;

/// Maximum number of priorities in one [`crate::Operation::Prioritize`].
pub const PRIORITIES_MAX: usize = 256;

/// Highest priority in [`crate::Operation::Prioritize`]. The agent keeps Linux's highest priority for itself, which is
/// 99 for `SCHED_FIFO` (sched(7)).
pub const PRIORITY_MAX: u8 = 98;

/// Maximum number of services, disks, interfaces, name servers or host entries in a request, or of names in an entry.
pub const LIST_ITEMS_MAX: usize = 256;

/// Maximum number of arguments of a command, and of variables of an environment.
pub const ARGUMENTS_MAX: usize = 4096;

/// Maximum length of a service's, host's or interface's name, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Maximum length of a path, in bytes (Linux's `PATH_MAX` without the final zero byte).
pub const PATH_BYTES_MAX: usize = 4095;

/// Maximum length of a block device's serial number, in bytes (virtio 1.2, section 5.2.6: `VIRTIO_BLK_T_GET_ID`).
pub const SERIAL_BYTES_MAX: usize = 20;

/// Maximum length of each text of [`crate::ReadyCheck::Tcp`], both the sent and the expected text, in bytes.
pub const READY_TEXT_BYTES_MAX: usize = 16 << 10;

/// Maximum length of an interval or a time limit, in milliseconds of guest time: one day.
pub const INTERVAL_MS_MAX: u64 = 24 * 60 * 60 * 1000;

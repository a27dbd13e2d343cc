//! Named bounds of the protocol.

/// Maximum length of a line on the control port, in bytes, without its newline.
pub const CONTROL_LINE_BYTES_MAX: usize = 1 << 20;

/// Maximum length of a service's output line, in bytes; the rest is dropped and [`crate::Output::truncated`] is set.
pub const LOG_TEXT_BYTES_MAX: usize = 1 << 20;

/// Maximum length of a line on the log port, in bytes, without its newline. JSON needs up to six bytes for one byte of
/// text (`\u0001`), and a few for the rest of the message.
pub const LOG_LINE_BYTES_MAX: usize = 6 * LOG_TEXT_BYTES_MAX + 4096;

/// Maximum length of a command's output line that is returned on the control port, in bytes. A line of this length fits
/// the port however JSON escapes it.
pub const EXEC_TEXT_BYTES_MAX: usize = CONTROL_LINE_BYTES_MAX / 8;

/// Maximum length of a line on the history port, in bytes, without its newline; the rest is dropped.
pub const HISTORY_LINE_BYTES_MAX: usize = 1 << 20;

/// Maximum number of names in one [`crate::Reply::Names`].
pub const LISTED_NAMES_MAX: usize = 4096;

/// Maximum total length of the names in one [`crate::Reply::Names`], in bytes. Names of this total length fit the
/// control port however JSON escapes them.
pub const LISTED_BYTES_MAX: usize = CONTROL_LINE_BYTES_MAX / 8;

/// Maximum number of bytes of file content in one [`crate::PutFile`]; a longer file is sent in pieces.
pub const PUT_FILE_BYTES_MAX: usize = 512 << 10;

/// Minimum length of entropy in a request, in bytes: with 256 bits the kernel considers its generator seeded.
pub const ENTROPY_BYTES_MIN: usize = 32;

/// Maximum length of entropy in a request ([`crate::Operation::Reseed`], [`crate::Join`]), in bytes.
pub const ENTROPY_BYTES_MAX: usize = 512;

/// Maximum number of priorities in one [`crate::Operation::Prioritize`].
pub const PRIORITIES_MAX: usize = 256;

/// Highest priority in [`crate::Operation::Prioritize`]. Linux's highest for `SCHED_FIFO` is 99 (sched(7)), which the
/// agent keeps for itself.
pub const PRIORITY_MAX: u8 = 98;

/// Maximum number of services, disks, interfaces or host entries in one request.
pub const LIST_ITEMS_MAX: usize = 256;

/// Maximum number of arguments of a command, and of variables of an environment.
pub const ARGUMENTS_MAX: usize = 4096;

/// Maximum length of a service's, host's or interface's name, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Maximum length of a path, in bytes (`PATH_MAX` minus its final zero).
pub const PATH_BYTES_MAX: usize = 4095;

/// Length of a block device's longest serial number, in bytes (virtio 1.2, section 5.2.6: `VIRTIO_BLK_T_GET_ID`).
pub const SERIAL_BYTES_MAX: usize = 20;

/// Maximum length of each of the two texts of [`crate::ReadyCheck::Tcp`], sent and expected, in bytes.
pub const READY_TEXT_BYTES_MAX: usize = 16 << 10;

/// Maximum interval or time limit, in milliseconds of guest time: one day.
pub const INTERVAL_MS_MAX: u64 = 24 * 60 * 60 * 1000;

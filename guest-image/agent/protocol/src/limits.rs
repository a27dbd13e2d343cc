//! Named bounds of the protocol.

/// Most bytes of a line on the control port, without its newline.
pub const CONTROL_LINE_BYTES_MAX: usize = 1 << 20;

/// Most bytes of a service's output line; the rest is dropped and [`crate::Output::truncated`] is set.
pub const LOG_TEXT_BYTES_MAX: usize = 1 << 20;

/// Most bytes of a line on the log port, without its newline. JSON needs up to six bytes for one byte of text (`\u0001`),
/// and a few for the rest of the message.
pub const LOG_LINE_BYTES_MAX: usize = 6 * LOG_TEXT_BYTES_MAX + 4096;

/// Most bytes of a command's output line that is returned on the control port. A line of this length fits the port
/// however JSON escapes it.
pub const EXEC_TEXT_BYTES_MAX: usize = CONTROL_LINE_BYTES_MAX / 8;

/// Most bytes of a line on the history port, without its newline; the rest is dropped.
pub const HISTORY_LINE_BYTES_MAX: usize = 1 << 20;

/// Most names in one [`crate::Reply::Names`].
pub const LISTED_NAMES_MAX: usize = 4096;

/// Most bytes of all names in one [`crate::Reply::Names`] together. Names of this total length fit the control port
/// however JSON escapes them.
pub const LISTED_BYTES_MAX: usize = CONTROL_LINE_BYTES_MAX / 8;

/// Most bytes of file content in one [`crate::PutFile`]; a longer file is sent in pieces.
pub const PUT_FILE_BYTES_MAX: usize = 512 << 10;

/// Fewest bytes of [`crate::Operation::Reseed`]: 256 bits, after which the kernel counts its generator as seeded.
pub const ENTROPY_BYTES_MIN: usize = 32;

/// Most bytes of [`crate::Operation::Reseed`].
pub const ENTROPY_BYTES_MAX: usize = 512;

/// Most priorities in one [`crate::Operation::Prioritize`].
pub const PRIORITIES_MAX: usize = 256;

/// Highest priority in [`crate::Operation::Prioritize`]. Linux's highest for `SCHED_FIFO` is 99 (sched(7)), which the
/// agent keeps for itself.
pub const PRIORITY_MAX: u8 = 98;

/// Most services, disks, interfaces or host entries in one request.
pub const LIST_ITEMS_MAX: usize = 256;

/// Most arguments of a command, and most variables of an environment.
pub const ARGUMENTS_MAX: usize = 4096;

/// Most bytes of a service's, host's or interface's name.
pub const NAME_BYTES_MAX: usize = 64;

/// Most bytes of a path (`PATH_MAX` minus its final zero).
pub const PATH_BYTES_MAX: usize = 4095;

/// Most bytes of a block device's serial number (virtio 1.2, section 5.2.6: `VIRTIO_BLK_T_GET_ID` has 20).
pub const SERIAL_BYTES_MAX: usize = 20;

/// Most bytes of each of the two texts of [`crate::ReadyCheck::Tcp`], sent and expected.
pub const READY_TEXT_BYTES_MAX: usize = 16 << 10;

/// Longest interval or limit, in milliseconds of guest time: one day.
pub const INTERVAL_MS_MAX: u64 = 24 * 60 * 60 * 1000;

//! Default number of workers and default memory of an exploration, from the host.

use std::thread;

/// Divisor: by default, the memory for moments is the host's memory divided by this number.
const MEMORY_PART: u64 = 4;
/// Default memory for moments if the size of the host's memory is unknown, in bytes.
const MEMORY_BYTES_DEFAULT: u64 = 1 << 30;

/// Returns the default number of workers: one per core.
pub(super) fn cores() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Returns the default memory for moments on this host, in bytes.
pub(super) fn default_memory() -> u64 {
    let info = rustix::system::sysinfo();
    match u64::from(info.mem_unit).saturating_mul(info.totalram) / MEMORY_PART {
        0 => MEMORY_BYTES_DEFAULT,
        bytes => bytes,
    }
}

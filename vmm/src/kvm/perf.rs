//! Performance counters of the host's kernel (perf_event_open(2)), for the engine and for checks of a host.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

/// Beginning of `struct perf_event_attr` (PERF_ATTR_SIZE_VER0 of include/uapi/linux/perf_event.h).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs, reason = "the kernel documents these fields")]
pub struct Attributes {
    pub type_: u32,
    /// Filled in by [`open`].
    pub size: u32,
    pub config: u64,
    pub sample_period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    pub wakeup_events: u32,
    pub bp_type: u32,
    pub config1: u64,
}

/// Bit of `flags`: do not count while the hypervisor runs.
pub const EXCLUDE_HV: u64 = 1 << 6;
/// PERF_FLAG_FD_CLOEXEC.
const FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// Opens a counter of events of the calling thread, on whichever CPU the thread runs.
///
/// # Errors
/// Returns an error if the host lacks this counter or does not permit it.
pub fn open(attributes: Attributes) -> io::Result<File> {
    let attributes = Attributes { size: size_of::<Attributes>() as u32, ..attributes };
    // SAFETY: the kernel reads `size` bytes of `attributes`, which live until the call returns, and returns a new
    // descriptor that has no other owner. The arguments mean this thread (0), any CPU (-1), no group (-1).
    unsafe {
        let fd = libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, FD_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(fd as i32))
    }
}

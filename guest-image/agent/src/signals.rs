//! SIGCHLD as a descriptor to poll.
#![allow(unsafe_code)]

use crate::failure::{Context as _, Failure};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};

/// A signalfd(2) that is readable after a child has changed state.
pub(crate) struct ChildSignals(OwnedFd);

impl ChildSignals {
    /// Blocks SIGCHLD, so that it is delivered only here.
    pub(crate) fn block() -> Result<Self, Failure> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` initialises the set; the other calls get that set and no other pointer. signalfd
        // returns a new descriptor that has no other owner.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
            if libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error()).context(|| String::from("block SIGCHLD"));
            }
            let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error()).context(|| String::from("make a signalfd"));
            }
            Ok(ChildSignals(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Discards the pending signals. Signals coalesce, so the caller must reap until no exited child is left.
    pub(crate) fn drain(&self) {
        // Room for several signalfd_siginfo, of 128 bytes each. An error means that nothing is left to read.
        let mut buffer = [0u8; 1024];
        while matches!(rustix::io::read(&self.0, &mut buffer), Ok(length) if length > 0) {}
    }
}

impl AsFd for ChildSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

//! A descriptor for SIGCHLD that poll(2) can watch.
#![allow(unsafe_code)]

use crate::failure::{Context as _, Failure};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};

/// Descriptor of signalfd(2) that is readable after a child has changed its state.
pub(crate) struct ChildSignals(OwnedFd);

impl ChildSignals {
    /// Blocks SIGCHLD, so that the signal arrives only through the returned descriptor.
    pub(crate) fn block() -> Result<Self, Failure> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` initialises the set. The other calls get a pointer to this set and no other pointer.
        // The descriptor that signalfd returns is new and has no other owner.
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

    /// Discards the pending signals. One signal may stand for several exits, so the caller reaps all children.
    pub(crate) fn drain(&self) {
        // Room for eight `signalfd_siginfo` of 128 bytes. An error means that the descriptor is empty.
        let mut buffer = [0u8; 1024];
        while matches!(rustix::io::read(&self.0, &mut buffer), Ok(length) if length > 0) {}
    }
}

impl AsFd for ChildSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

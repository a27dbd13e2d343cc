//! Errors of KVM, one line each.

use std::io;

use vmm_sys_util::errno;

/// Reason why a KVM request failed.
#[derive(Debug, thiserror::Error)]
pub enum KvmError {
    /// The device does not exist.
    #[error("/dev/kvm does not exist: this host offers no virtualisation, or its kvm module is not loaded")]
    Absent,
    /// The user may not open the device.
    #[error("/dev/kvm: permission denied; membership in the group that owns it (often kvm) is needed")]
    Denied,
    /// The version of KVM's interface is not 12. The version has been 12 since 2007.
    #[error("/dev/kvm has API version {0}; Everett needs version 12")]
    Version(i32),
    /// A required capability is missing.
    #[error("this host's KVM lacks {0}")]
    Lacks(&'static str),
    /// Guest memory is not one region from address 0.
    #[error("guest memory is not one region from address 0")]
    Memory,
    /// KVM refused a value for an MSR.
    #[error("this host's KVM does not take {1:#x} for the guest's MSR {0:#x}")]
    MsrWrite(u32, u64),
    /// KVM has no such MSR.
    #[error("this host's KVM cannot read the guest's MSR {0:#x}")]
    MsrRead(u32),
    /// The host disturbed the guest, so the engine discards the run. Another attempt may succeed.
    #[error("the host disturbed the guest: {0}")]
    Disturbed(String),
    /// The soft CPU that works beside KVM panicked with this message, which is a defect of Everett.
    #[error("{0}")]
    Panic(String),
    /// KVM returned an exit that the engine does not expect.
    #[error("KVM ended a run in an unexpected way: {0}")]
    Exit(String),
    /// A request failed.
    #[error("KVM: {what}")]
    Request {
        /// Request that failed.
        what: &'static str,
        /// The host's error.
        source: HostError,
    },
}

/// Error that the host's kernel returned. Its text says what the error number means for KVM.
#[derive(Debug, thiserror::Error)]
#[error("{}", explain(.0))]
pub struct HostError(io::Error);

impl KvmError {
    pub(crate) fn request(what: &'static str, error: errno::Error) -> KvmError {
        KvmError::failed(what)(io::Error::from_raw_os_error(error.errno()))
    }

    /// Returns a function that wraps the host's error from the request `what`.
    pub(crate) fn failed(what: &'static str) -> impl FnOnce(io::Error) -> KvmError {
        move |error| KvmError::Request { what, source: HostError(error) }
    }
}

/// Returns KVM's meaning of the usual error numbers, and the system's text for all others.
fn explain(error: &io::Error) -> String {
    let known = match error.raw_os_error() {
        Some(libc::ENOMEM) => "the host is out of memory, or has no room for another virtual machine",
        Some(libc::EMFILE | libc::ENFILE) => "too many open files, of which each virtual machine needs two",
        Some(libc::EBUSY) => "another hypervisor uses the processor's virtualisation",
        Some(libc::ENODEV | libc::ENXIO) => "the device is gone",
        Some(libc::EACCES | libc::EPERM) => "permission denied",
        Some(libc::ENOTTY) => "this kernel has no such request",
        Some(libc::EIO) => "the machine is dead: the host's kernel ended it",
        Some(libc::EFAULT) => "guest memory is not mapped on the host",
        _ => return error.to_string(),
    };
    known.to_owned()
}

/// Maximum number of times that a request is repeated because a signal interrupted it. Without a bound, signals that
/// arrive faster than the kernel creates a virtual machine would interrupt the request forever.
const TRIES_MAX: u32 = 1000;

/// Makes a request that may wait in the kernel. Repeats it if a signal interrupts it, at most [`TRIES_MAX`] times.
pub(crate) fn uninterrupted<T>(
    what: &'static str,
    mut request: impl FnMut() -> Result<T, errno::Error>,
) -> Result<T, KvmError> {
    let mut tries = 0;
    loop {
        match request() {
            Err(error) if error.errno() == libc::EINTR && tries < TRIES_MAX => tries += 1,
            result => return result.wanted(what),
        }
    }
}

/// Adds the name of a KVM request to its error.
pub(crate) trait Wanted<T> {
    /// Turns the error into a [`KvmError`] that names the request `what`.
    fn wanted(self, what: &'static str) -> Result<T, KvmError>;
}

impl<T> Wanted<T> for Result<T, errno::Error> {
    fn wanted(self, what: &'static str) -> Result<T, KvmError> {
        self.map_err(|error| KvmError::request(what, error))
    }
}

#[cfg(test)]
mod tests {
    use everett_input::causes::with_causes;

    use super::*;

    #[test]
    fn a_signal_does_not_end_a_request_and_signals_without_end_do() {
        let mut calls = 0;
        let done = uninterrupted("wait", || {
            calls += 1;
            if calls < 5 { Err(errno::Error::new(libc::EINTR)) } else { Ok(calls) }
        });
        assert_eq!(done.unwrap(), 5);
        let never = uninterrupted::<()>("wait", || Err(errno::Error::new(libc::EINTR)));
        assert!(with_causes(&never.unwrap_err()).starts_with("KVM: wait: "));
    }

    #[test]
    fn each_error_is_one_line_that_says_what_was_wanted() {
        for number in [libc::ENOMEM, libc::EMFILE, libc::EBUSY, libc::ENODEV, libc::EIO, libc::EINVAL] {
            let error = KvmError::request("create a virtual machine", errno::Error::new(number));
            let text = with_causes(&error);
            assert!(text.starts_with("KVM: create a virtual machine: ") && !text.contains('\n'), "{text}");
        }
        assert!(KvmError::MsrWrite(0x1a0, 1).to_string().contains("0x1a0"));
    }
}

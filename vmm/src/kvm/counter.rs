//! Counter of the conditional branches that a guest retires on KVM. It signals the thread near a requested count.
//!
//! The signal only takes control back from the guest. The host may deliver it late or lose it, so the engine reads the
//! exact count after each exit.
//!
//! The counted perf event depends on the processor: 0x01c4 on Intel up to Comet Lake, 0x11c4 from Ice Lake on, 0xd1 on
//! AMD Zen. Zen counts exactly only after the host's administrator has set bit 54 of MSR 0xc0011020. `everett doctor`
//! runs guests to find the event that counts exactly on this host; it does not look at the processor's name.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::thread::{self, ThreadId};

use super::error::KvmError;
use super::perf::{self, Attributes, EXCLUDE_HV};

/// Counter of the conditional branches that the guest retires. Tests replace it by a simulated one.
pub trait Counter: Debug + Send {
    /// Restarts the count at 0, and signals this thread some time after `after` branches.
    ///
    /// # Errors
    /// Returns an error if the host has no counter or has taken it away.
    fn arm(&mut self, after: u64) -> Result<(), KvmError>;
    /// Returns the number of branches since [`Counter::arm`].
    ///
    /// # Errors
    /// Returns [`KvmError::Disturbed`] if the counter missed some branches.
    fn read(&mut self) -> Result<u64, KvmError>;
}

const PERF_TYPE_RAW: u32 = 4;
/// Bits of `read_format`: also return the time for which the event was enabled, and the time for which the processor
/// counted it.
const TIMES: u64 = 0b11;
/// Bit of `flags`: the counter starts disabled.
const DISABLED: u64 = 1;
/// Bit of `flags`: the event is always on a hardware counter, or fails.
const PINNED: u64 = 1 << 2;
/// Bit of `flags`: count the guest only.
const EXCLUDE_HOST: u64 = 1 << 19;
/// PERF_EVENT_IOC_ENABLE.
const ENABLE: libc::c_ulong = 0x2400;
/// PERF_EVENT_IOC_DISABLE.
const DISABLE: libc::c_ulong = 0x2401;
/// PERF_EVENT_IOC_RESET.
const RESET: libc::c_ulong = 0x2403;
/// PERF_EVENT_IOC_PERIOD.
const PERIOD: libc::c_ulong = 0x4008_2404;
/// Command of `fcntl` that sets the signal (include/uapi/asm-generic/fcntl.h).
const F_SETSIG: libc::c_int = 10;
/// Command of `fcntl` that sets the receiver of the signal.
const F_SETOWN_EX: libc::c_int = 15;
/// F_SETOWN_EX owner type: a thread.
const F_OWNER_TID: libc::c_int = 0;
/// Maximum sampling period. No run reaches it, so a counter with this period never signals.
const PERIOD_MAX: u64 = 1 << 40;

/// Counter of the processor's performance unit for the guests that one thread runs.
#[derive(Debug)]
pub struct PerfCounter {
    event: u64,
    file: File,
    /// Thread that runs the guests in which the counter counts. On another thread, [`PerfCounter::start`] opens a new
    /// counter. The field is a `ThreadId`, which is never reused. The kernel reuses its thread IDs when threads end.
    thread: ThreadId,
}

fn done(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl PerfCounter {
    /// Opens a counter of raw event number `event` in the guests that the calling thread runs.
    ///
    /// # Errors
    /// Returns an error if the host lacks this counter or does not permit it.
    pub fn open(event: u64) -> io::Result<PerfCounter> {
        let file = perf::open(Attributes {
            type_: PERF_TYPE_RAW,
            config: event,
            sample_period: PERIOD_MAX,
            read_format: TIMES,
            flags: DISABLED | PINNED | EXCLUDE_HV | EXCLUDE_HOST,
            wakeup_events: 1,
            ..Attributes::default()
        })?;
        let counter = PerfCounter { event, file, thread: thread::current().id() };
        counter.signal_this_thread()?;
        Ok(counter)
    }

    /// True if a counter of this thread has signalled since the last call.
    pub fn has_overflowed() -> bool {
        OVERFLOWED.replace(false)
    }

    /// Restarts the count at 0, and sends a signal some time after `after` events.
    ///
    /// # Errors
    /// Returns an error if the host refuses.
    pub fn start(&mut self, after: u64) -> io::Result<()> {
        if self.thread != thread::current().id() {
            *self = PerfCounter::open(self.event)?;
        }
        // A late signal of the previous run must not be taken for one of this run.
        OVERFLOWED.set(false);
        let period = after.clamp(1, PERIOD_MAX);
        let fd = self.file.as_raw_fd();
        // SAFETY: the descriptor is ours; the kernel reads one integer for PERIOD, and nothing for the others.
        unsafe {
            done(libc::ioctl(fd, DISABLE, 0))?;
            done(libc::ioctl(fd, RESET, 0))?;
            done(libc::ioctl(fd, PERIOD, &raw const period))?;
            done(libc::ioctl(fd, ENABLE, 0))
        }
    }

    /// Returns the number of events since [`PerfCounter::start`], or `None` if the counter missed some.
    ///
    /// # Errors
    /// Returns an error if the host cannot read the counter.
    pub fn counted(&mut self) -> io::Result<Option<u64>> {
        let mut bytes = [0; 24];
        match self.file.read_exact(&mut bytes) {
            Ok(()) => {}
            // The kernel returns end-of-file for a pinned counter that lost its hardware counter.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let word = |n: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[8 * n + i]));
        let (counted, wanted, on) = (word(0), word(1), word(2));
        Ok((wanted == on).then_some(counted))
    }

    fn signal_this_thread(&self) -> io::Result<()> {
        #[repr(C)]
        struct Owner {
            type_: libc::c_int,
            pid: libc::pid_t,
        }
        let signal = libc::SIGRTMIN() + 6;
        let fd = self.file.as_raw_fd();
        // SAFETY: all zeroes is a valid `sigaction`, and the handler touches a thread-local flag and nothing else. The
        // descriptor is ours; the kernel reads one `Owner`, which is its `struct f_owner_ex`.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = overflowed as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            done(libc::sigaction(signal, &raw const action, std::ptr::null_mut()))?;
            let owner = Owner { type_: F_OWNER_TID, pid: libc::gettid() };
            done(libc::fcntl(fd, F_SETOWN_EX, &raw const owner))?;
            done(libc::fcntl(fd, F_SETSIG, signal))?;
            done(libc::fcntl(fd, libc::F_SETFL, libc::O_ASYNC))
        }
    }
}

impl Counter for PerfCounter {
    fn arm(&mut self, after: u64) -> Result<(), KvmError> {
        self.start(after).map_err(KvmError::failed("start a counter"))
    }
    fn read(&mut self) -> Result<u64, KvmError> {
        let counted = self.counted().map_err(KvmError::failed("read a counter"))?;
        counted.ok_or_else(|| KvmError::Disturbed("the counter was taken away for a while".to_owned()))
    }
}

thread_local! {
    // Constant and without a destructor, so that a signal handler can use it.
    static OVERFLOWED: Cell<bool> = const { Cell::new(false) };
}

extern "C" fn overflowed(_: libc::c_int) {
    OVERFLOWED.set(true);
}

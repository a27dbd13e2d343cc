//! Performance counters: whether retired instructions can be counted here, measured on a loop of known length, and a counter
//! of what guests of `/dev/kvm` do.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

use super::{Finding, Verdict};

/// The beginning of `struct perf_event_attr` (PERF_ATTR_SIZE_VER0 of include/uapi/linux/perf_event.h).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    type_: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_TYPE_RAW: u32 = 4;
const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;
const PERF_COUNT_HW_BRANCH_INSTRUCTIONS: u64 = 4;
/// Bits of `flags`: always on a counter or not at all; count neither the kernel, nor a hypervisor, nor the host.
const PINNED: u64 = 1 << 2;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const EXCLUDE_HOST: u64 = 1 << 19;
/// PERF_FLAG_FD_CLOEXEC.
const FD_CLOEXEC: libc::c_ulong = 1 << 3;
/// Of `fcntl`, with who gets the signal (include/uapi/asm-generic/fcntl.h).
const F_SETSIG: libc::c_int = 10;
const F_SETOWN_EX: libc::c_int = 15;
const F_OWNER_TID: libc::c_int = 0;
/// How often the loop goes round: each round has at least one branch.
const ROUNDS: u64 = 100_000;

pub(super) fn examine() -> Finding {
    let name = "perf counters";
    match (count(PERF_COUNT_HW_INSTRUCTIONS), count(PERF_COUNT_HW_BRANCH_INSTRUCTIONS)) {
        (Ok(instructions), Ok(branches)) if branches >= ROUNDS && instructions > branches => Finding::new(
            name,
            Verdict::Ok,
            format!("count ({instructions} instructions, {branches} branches)"),
        ),
        (Ok(instructions), Ok(branches)) => {
            let what = format!("open but do not count ({instructions} instructions, {branches} branches)");
            Finding::new(name, Verdict::Note, what)
        }
        (Err(error), _) | (_, Err(error)) => Finding::new(name, Verdict::Note, explain(&error)),
    }
}

/// Why there is no counter.
fn explain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => "this host has none".to_owned(),
        Some(libc::EACCES | libc::EPERM) => {
            "not allowed (kernel.perf_event_paranoid); only the kvm engine would use them".to_owned()
        }
        Some(libc::ENOSYS) => "this kernel has no perf events".to_owned(),
        _ => error.to_string(),
    }
}

/// Count one hardware event of this thread's over the loop.
fn count(event: u64) -> io::Result<u64> {
    let mut counter = Counter::open(Attributes {
        type_: PERF_TYPE_HARDWARE,
        config: event,
        flags: EXCLUDE_KERNEL | EXCLUDE_HV,
        ..Attributes::default()
    })?;
    let before = counter.value()?;
    for round in 0..ROUNDS {
        black_box(round);
    }
    Ok(counter.value()?.saturating_sub(before))
}

/// A counter of this thread's, which counts from when it is made.
pub(super) struct Counter(File);

impl Counter {
    /// Count a raw event in guests that this thread runs, and nowhere else. With `after`, a signal interrupts the thread
    /// when so many were counted.
    ///
    /// # Errors
    /// When the host has no such counter, in words.
    pub(super) fn of_guests(event: u64, after: Option<u64>) -> Result<Counter, String> {
        let open = || {
            let counter = Counter::open(Attributes {
                type_: PERF_TYPE_RAW,
                config: event,
                sample_period: after.unwrap_or(0),
                wakeup_events: u32::from(after.is_some()),
                flags: PINNED | EXCLUDE_HV | EXCLUDE_HOST,
                ..Attributes::default()
            })?;
            if after.is_some() {
                counter.signal_this_thread()?;
            }
            Ok(counter)
        };
        open().map_err(|error: io::Error| explain(&error))
    }

    /// How many there were.
    ///
    /// # Errors
    /// When it does not count, in words.
    pub(super) fn read(&mut self) -> Result<u64, String> {
        self.value().map_err(|error| match error.kind() {
            // How a pinned counter says that it got no counter of the processor's.
            io::ErrorKind::UnexpectedEof => "all counters are taken".to_owned(),
            _ => explain(&error),
        })
    }

    /// Whether the signal has come since the last call.
    pub(super) fn has_overflowed() -> bool {
        OVERFLOWED.replace(false)
    }

    fn open(attributes: Attributes) -> io::Result<Counter> {
        let attributes = Attributes { size: size_of::<Attributes>() as u32, ..attributes };
        // SAFETY: the kernel reads `size` bytes of `attributes`, which live until the call returns, and gives a new
        // descriptor that nobody else owns: this thread (0), any CPU (-1), no group (-1).
        unsafe {
            let fd = libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, FD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Counter(File::from_raw_fd(fd as i32)))
        }
    }

    fn value(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn signal_this_thread(&self) -> io::Result<()> {
        #[repr(C)]
        struct Owner {
            type_: libc::c_int,
            pid: libc::pid_t,
        }
        let signal = libc::SIGRTMIN() + 6;
        let fd = self.0.as_raw_fd();
        let done = |answer| if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
        OVERFLOWED.set(false);
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

thread_local! {
    // Constant and without a destructor, so that a signal handler can use it.
    static OVERFLOWED: Cell<bool> = const { Cell::new(false) };
}

extern "C" fn overflowed(_: libc::c_int) {
    OVERFLOWED.set(true);
}

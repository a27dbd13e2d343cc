//! Performance counters: whether retired instructions can be counted here, measured on a loop of known length.
#![allow(unsafe_code)]

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

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
const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;
const PERF_COUNT_HW_BRANCH_INSTRUCTIONS: u64 = 4;
/// Bits of `flags`: count neither the kernel nor a hypervisor.
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
/// PERF_FLAG_FD_CLOEXEC.
const FD_CLOEXEC: libc::c_ulong = 1 << 3;
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
pub(super) fn explain(error: &io::Error) -> String {
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
struct Counter(File);

impl Counter {
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
}

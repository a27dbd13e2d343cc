//! Check of the performance counters: they count the instructions and branches of a loop of known length.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};

use everett_vmm::kvm::perf::{self, Attributes, EXCLUDE_HV};

use super::{Finding, Verdict};

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;
const PERF_COUNT_HW_BRANCH_INSTRUCTIONS: u64 = 4;
/// Bit of `flags`: events in the kernel are not counted.
const EXCLUDE_KERNEL: u64 = 1 << 5;
/// Number of rounds of the loop. Each round has at least one branch.
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

/// Explains in words why a counter cannot be opened.
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

/// Runs the loop and returns how often this thread caused one hardware event.
fn count(event: u64) -> io::Result<u64> {
    let mut counter = Counter(perf::open(Attributes {
        type_: PERF_TYPE_HARDWARE,
        config: event,
        flags: EXCLUDE_KERNEL | EXCLUDE_HV,
        ..Attributes::default()
    })?);
    let before = counter.value()?;
    for round in 0..ROUNDS {
        black_box(round);
    }
    Ok(counter.value()?.saturating_sub(before))
}

/// A counter for this thread. It counts from its creation on.
struct Counter(File);

impl Counter {
    fn value(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

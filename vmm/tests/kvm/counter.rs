//! Tests of the processor's branch counter, on hosts that have a counter.

use everett_vmm::kvm::PerfCounter;
use libtest_mimic::Trial;

use crate::trials::{Lacking, Ran, trial};

/// Raw event that counts retired conditional branches, on Intel processors from Ice Lake on.
const EVENT: u64 = 0x11c4;

fn nothing_of_the_host_is_counted() -> Ran {
    let mut counter =
        PerfCounter::open(EVENT).map_err(|error| Lacking::new(format!("no counter: {error}")))?;
    counter.start(1000).unwrap();
    (0..10_000).for_each(|n| {
        std::hint::black_box(n);
    });
    assert_eq!(counter.counted().unwrap(), Some(0));
    Ok(())
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![trial(nothing_of_the_host_is_counted)]
}

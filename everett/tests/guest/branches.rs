//! Clock mode `branch`: a stock kernel boots, keeps time, preempts processes that only compute, and repeats exactly.

use everett_session::machines::EngineOptions;
use everett_streams::Seed;
use everett_vmm::clock::ClockMode;
use everett_vmm::engine::soft::FlushSchedule;

use crate::support::{MS, findings, launcher_of, lines, ready, run_to_end};

const SECOND: u64 = 1000 * MS;

/// World in which one process computes forever without a system call, and others read the time and sleep.
const WORLD: &str = r#"
clock = "branch"
[[node]]
name = "a"
[[workload.driver]]
name = "computes"
argv = ["sh", "-c", "while :; do :; done"]
[[workload.driver]]
name = "waits"
argv = ["sh", "-c", "before=$(date +%s%N); sleep 0.5; echo slept $(( ($(date +%s%N) - before) / 1000000 )) ms; cat /proc/sys/kernel/random/uuid"]
[[workload.driver]]
name = "works"
argv = ["sh", "-c", "cat /sys/devices/system/clocksource/clocksource0/current_clocksource; n=0; while test $n -lt 9; do n=$((n + 1)); date +%s%N; done | sort -u | wc -l"]
[[workload.check]]
name = "network"
argv = ["sh", "-c", "ip -brief address show eth0 | cut -d' ' -f1"]
"#;

#[test]
fn a_stock_kernel_keeps_time_preempts_and_repeats() {
    let launcher = launcher_of(WORLD);
    let mut cold = launcher.start(Seed::new(1)).unwrap();
    assert_eq!(cold.machine(0).clock_mode(), ClockMode::Branch);
    let (trail, events) = run_to_end(&mut cold, SECOND);
    assert_eq!(findings(&events), [] as [&str; 0]);
    let [slept, drawn] = lines(&events, "waits")[..] else { panic!("{events:?}") };
    let slept: u64 = slept.split(' ').nth(1).and_then(|ms| ms.parse().ok()).expect(slept);
    assert!((500..600).contains(&slept), "a sleep of 500 ms took {slept} ms");
    let [clocksource, instants] = lines(&events, "works")[..] else { panic!("{events:?}") };
    assert_eq!(clocksource, "hpet");
    assert_eq!(instants, "9", "each read of the clock must give a later time");

    // A timeline that starts at *ready* (all services are up) has the same trail, even if the CPU drops its caches at
    // random instants. Another seed gives another trail.
    let (launcher, _) = ready(launcher);
    let mut disturbed = launcher.clone();
    let flushes = Some(FlushSchedule { interval: 100_000, seed: 5 });
    disturbed.options = EngineOptions { flushes, ..EngineOptions::default() };
    let (again, _) = run_to_end(&mut disturbed.start(Seed::new(1)).unwrap(), SECOND);
    assert_eq!(again.digest(), trail.digest());
    let (other, events) = run_to_end(&mut launcher.start(Seed::new(2)).unwrap(), SECOND);
    assert_ne!(other.digest(), trail.digest());
    assert_ne!(lines(&events, "waits")[1], drawn);
}

//! What is done to worlds: it is exact, it is undone, and it reaches what nothing else does.

use std::sync::Arc;

use everett_cpu::CacheConfig;
use everett_snapshot::Pool;
use everett_tools::moments::Stored;
use everett_tools::session::drive::{Ended, drive};
use everett_tools::session::event::{Event, What};
use everett_tools::session::launch::{EngineOptions, Launcher};
use everett_tools::session::timeline::Timeline;
use everett_vmm::Trail;
use everett_vmm::engine::soft::FlushSchedule;
use everett_vmm::fault::FaultKind;
use everett_vmm::machine::Until;

use crate::support::{Keeper, MS, booted_launcher_of, findings, lines, under};

/// A machine that writes to its disk and to a server on another one.
const WORLD: &str = r#"
[[node]]
name = "db"
memory = "96M"
disk = { path = "/data", size = "16M", flush = "3ms" }
[[node]]
name = "peer"
memory = "96M"
service = ["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""]
[[workload.driver]]
name = "write"
node = "db"
repeat = true
argv = ["sh", "-c", '''
n=$(cat /data/n 2> /dev/null || echo 0)
echo "begins at $n"
while n=$((n + 1)); do echo $n > /data/new && sync /data/new && mv /data/new /data/n && sync /data; done
''']
[[workload.driver]]
name = "talk"
node = "db"
repeat = true
argv = ["sh", "-c", "while :; do timeout 0.2 redis-cli -h peer incr n; done"]
[[workload.check]]
name = "read"
node = "db"
argv = ["cat", "/data/n"]
"#;

/// Every fault there is.
const PLAN: &str = r#"
{"at": "10ms", "for": "200ms", "fault": "latency", "links": "all", "extra": {"uniform": ["1ms", "5ms"]}}
{"at": "20ms", "for": "200ms", "fault": "loss", "links": "all", "ppm": 100000}
{"at": "20ms", "for": "200ms", "fault": "duplicate", "links": "all", "ppm": 200000}
{"at": "20ms", "for": "200ms", "fault": "reorder", "links": "all", "ppm": 200000, "hold": "2ms"}
{"at": "20ms", "for": "200ms", "fault": "corrupt", "links": "all", "ppm": 50000}
{"at": "30ms", "for": "200ms", "fault": "bandwidth", "links": "all", "bits_per_s": 10000000}
{"at": "40ms", "for": "100ms", "fault": "stalls", "node": "db", "every_instructions": 100000, "stall": {"uniform": ["1ms", "4ms"]}}
{"at": "50ms", "for": "100ms", "fault": "priorities", "node": "peer", "unit": "redis-server", "every": "10ms"}
{"at": "60ms", "for": "100ms", "fault": "slow_cpu", "node": "peer", "ppm": 300000}
{"at": "70ms", "for": "300ms", "fault": "clock_drift", "node": "peer", "ppm": 40000}
{"at": "80ms", "fault": "clock_step", "node": "peer", "step": "90s"}
{"at": "90ms", "fault": "reseed", "node": "db"}
{"at": "95ms", "fault": "command", "node": "db", "argv": ["sh", "-c", "echo custom; date +%s"]}
{"at": "100ms", "for": "100ms", "fault": "disk_latency", "node": "db", "extra": {"uniform": ["1ms", "9ms"]}}
{"at": "110ms", "for": "50ms", "fault": "disk_full", "node": "db"}
{"at": "115ms", "for": "10ms", "fault": "disk_error", "node": "db", "requests": "read", "ppm": 1000}
{"at": "250ms", "for": "40ms", "fault": "partition", "links": {"from": ["db"], "to": ["peer"]}, "mode": "hold"}
{"at": "300ms", "for": "40ms", "fault": "clog", "node": "peer"}
{"at": "350ms", "for": "40ms", "fault": "pause", "node": "peer"}
{"at": "400ms", "for": "30ms", "fault": "power_loss", "node": "db"}
{"at": "410ms", "fault": "bit_rot", "node": "db", "bits": 1}
{"at": "450ms", "fault": "reset", "node": "peer"}
"#;

/// Another one.
const OTHER: &str = r#"
{"at": "30ms", "for": "30ms", "fault": "power_loss", "node": "peer"}
{"at": "50ms", "for": "200ms", "fault": "loss", "links": "all", "ppm": 500000}
{"at": "100ms", "for": "100ms", "fault": "stalls", "node": "db", "every_instructions": 50000, "stall": "3ms"}
"#;

const DURATION_NS: u64 = 1_200 * MS;

fn told(timeline: &mut Timeline, duration_ns: u64) -> (Trail, Vec<Event>) {
    let mut keeper = Keeper::default();
    assert_eq!(drive(timeline, duration_ns, &mut keeper).unwrap(), Ended::Whole);
    (timeline.trail().clone(), keeper.0)
}

/// All of the plan was done, and showed.
fn assert_done(events: &[Event]) {
    for kind in FaultKind::ALL {
        let named = format!("\"fault\":\"{}\"", kind.name());
        let begun = |event: &Event| matches!(&event.what, What::Fault { line, .. } if line.contains(&named));
        assert!(events.iter().any(begun), "{named}");
    }
    let not_done =
        |event: &&Event| matches!(&event.what, What::Effect { text } if text.starts_with("not done"));
    assert_eq!(events.iter().filter(not_done).collect::<Vec<_>>(), Vec::<&Event>::new());
    let healed = events.iter().filter(|event| matches!(event.what, What::Healed { .. })).count();
    assert_eq!(healed, PLAN.lines().filter(|line| line.contains("\"for\"")).count());
    let begins = lines(events, "write");
    assert_eq!(begins.len(), 2, "before the loss of power, and after it: {begins:?}");
    assert_eq!(lines(events, "fault-12")[0], "custom");
}

#[test]
fn a_plan_gives_one_trail_whatever_else_was_run() {
    let (launcher, points) = booted_launcher_of(WORLD);
    let (faulty, other) = (under(&launcher, &points, PLAN), under(&launcher, &points, OTHER));
    let mut worker = faulty.start(1).unwrap();
    let (trail, events) = told(&mut worker, DURATION_NS);
    assert_done(&events);

    // The worker goes through another plan, and none, and comes back.
    assert!(other.start_again(&mut worker, 1).unwrap());
    assert_ne!(told(&mut worker, DURATION_NS).0, trail);
    assert!(launcher.start_again(&mut worker, 1).unwrap());
    assert_ne!(told(&mut worker, DURATION_NS).0, trail);
    assert!(faulty.start_again(&mut worker, 1).unwrap());
    assert_eq!(told(&mut worker, DURATION_NS), (trail.clone(), events));
    assert_ne!(told(&mut faulty.start(2).unwrap(), DURATION_NS).0, trail, "another seed");

    // With caches that are small and dropped at random.
    let options = EngineOptions {
        caches: CacheConfig { tlb_entries: 64, block_entries: 4096 },
        flushes: Some(FlushSchedule { interval: 500_000, seed: 3 }),
        ..EngineOptions::default()
    };
    let small = Launcher { options, ..launcher };
    assert_eq!(told(&mut under(&small, &points, PLAN).start(1).unwrap(), DURATION_NS).0, trail);
}

/// Moments with frames and requests in flight, faults that last, and nodes that are off, paused, or boot.
#[test]
fn moments_among_faults_change_nothing_and_lead_back() {
    let (launcher, points) = booted_launcher_of(WORLD);
    let faulty = under(&launcher, &points, PLAN);
    let mut worker = faulty.start(1).unwrap();
    let (trail, events) = told(&mut worker, DURATION_NS);
    let pool = Pool::default();
    let mut timeline = faulty.start(1).unwrap();
    timeline.end_after(DURATION_NS);
    let end_ns = trail.points().last().unwrap().0;
    let (mut stored, mut so_far, mut in_flight) = (Vec::new(), Vec::new(), 0);
    while timeline.vtime() < end_ns {
        timeline.run(&Until::vtime((timeline.vtime() + 7_777_777).min(end_ns)));
        so_far.append(&mut timeline.take_events());
        in_flight += usize::from(timeline.machine(0).disk_requests() > 0);
        stored.push(Stored::of(&mut timeline, &pool, so_far.clone(), vec![Vec::new(); 2]));
    }
    assert_eq!((timeline.trail(), so_far), (&trail, events));
    assert!(in_flight > 5, "{in_flight} moments with a request to the disk in flight");
    for (number, chosen) in stored.into_iter().enumerate().filter(|(number, _)| number % 11 == 4) {
        let from = Launcher { from: Some(Arc::new(chosen)), ..faulty.clone() };
        assert!(from.start_again(&mut worker, 1).unwrap());
        worker.run(&Until::vtime(end_ns.min(worker.vtime() + 250 * MS)));
        let points = worker.trail().points();
        assert_eq!(points, &trail.points()[..points.len()], "moment {number}");
    }
}

/// A machine that says what it finds when it starts.
const RESTARTED: &str = r#"
[[node]]
name = "a"
memory = "96M"
disk = { path = "/data", size = "16M" }
[[workload.driver]]
name = "say"
repeat = true
argv = ["sh", "-c", '''
echo "up $(cut -d. -f1 /proc/uptime), disk $(cat /data/n 2> /dev/null), memory $(cat /tmp/n 2> /dev/null)"
echo "recovered $(dmesg | grep -c 'EXT4-fs.*recovery complete')"
echo "realtime $(date +%s)"
cat /proc/sys/kernel/random/boot_id
echo 1 > /tmp/n
n=0
while n=$((n + 1)); do echo $n > /data/new && sync /data/new && mv /data/new /data/n && sync /data; done
''']
"#;

#[test]
fn a_warm_restart_is_a_cold_one_that_costs_nothing() {
    let (launcher, points) = booted_launcher_of(RESTARTED);
    let of = |restart: &str| {
        let plan = format!(
            r#"{{"at": "300ms", "for": "50ms", "fault": "power_loss", "node": "a", "restart": "{restart}"}}"#
        );
        let mut timeline = under(&launcher, &points, &plan).start(1).unwrap();
        let events = told(&mut timeline, 1_500 * MS).1;
        assert!(findings(&events).is_empty(), "{restart}: {:?}", findings(&events));
        let said: Vec<String> = lines(&events, "say").into_iter().map(str::to_owned).collect();
        assert_eq!(said.len(), 8, "{restart}: {said:?}");
        let mut started =
            events.iter().filter(|e| matches!(&e.what, What::Start { unit, .. } if unit == "say"));
        (said, started.next_back().unwrap().vtime_ns, timeline.icount())
    };
    let (warm, warm_ns, warm_count) = of("warm");
    let (cold, cold_ns, cold_count) = of("cold");
    // Until the loss of power they are one timeline; the disk has what it has.
    assert_eq!(warm[..4], cold[..4]);
    assert_eq!(warm[4..7], cold[4..7]);
    assert!(warm[4].starts_with("up 0, disk ") && warm[4].ends_with(", memory "), "{}", warm[4]);
    assert_eq!(warm[5], "recovered 1");
    assert!(warm[7] != warm[3] && cold[7] != cold[3], "each boot has an ID of its own");
    // The kernel's boot takes as long, whether it is executed or was.
    let apart_ns = warm_ns.abs_diff(cold_ns);
    assert!(apart_ns < 20 * MS, "{} ms apart", apart_ns / MS);
    assert!(warm_count + 300_000_000 < cold_count, "{warm_count} instructions, {cold_count}");
}

/// Two threads that forget an addition only if one is preempted between two lines.
const RACE: &str = r#"
[[node]]
name = "a"
memory = "96M"
[[workload.driver]]
name = "race"
argv = ["python3", "-c", '''
import threading
counter = 0
barrier = threading.Barrier(2)
def plus_one(x):
    return x + 1
def work():
    global counter
    for _ in range(200):
        barrier.wait()
        x = counter
        x = plus_one(x)
        counter = x
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("counted", counter)
''']
"#;

#[test]
fn a_race_of_two_threads_is_reached_by_stalls() {
    let (launcher, points) = booted_launcher_of(RACE);
    let counted = |launcher: &Launcher, seed: u64| -> u32 {
        let events = told(&mut launcher.start(seed).unwrap(), 60_000 * MS).1;
        let line = lines(&events, "race").first().copied().unwrap_or_default().to_owned();
        line.strip_prefix("counted ").and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{events:?}"))
    };
    let seeds = 1..=4;
    assert!(seeds.clone().all(|seed| counted(&launcher, seed) == 400), "it takes a fault");
    let stalls = r#"{"at": "0s", "for": "55s", "fault": "stalls", "node": "a", "every_instructions": 20000, "stall": {"uniform": ["1ms", "10ms"]}}"#;
    let stalled = under(&launcher, &points, stalls);
    assert!(seeds.clone().any(|seed| counted(&stalled, seed) < 400), "stalls reach it");
}

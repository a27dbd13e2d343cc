//! Tests of faults: they repeat exactly, they heal, and a machine that is restored afterwards has no trace of them.

use std::sync::Arc;

use everett_cpu::CacheConfig;
use everett_fault::FaultKind;
use everett_session::machines::EngineOptions;
use everett_session::run::launch::Launcher;
use everett_session::world::event::{Event, What};
use everett_session::world::moments::Stored;
use everett_snapshot::Pool;
use everett_streams::Seed;
use everett_vmm::engine::soft::FlushSchedule;
use everett_vmm::machine::Until;

use crate::support::{MS, findings, launcher_of, lines, ready, run_to_end, under};

/// World with a machine that writes to its disk and to a server on another machine.
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

/// Fault plan with every kind of fault.
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
{"at": "200ms", "fault": "restart_service", "node": "peer", "unit": "redis-server"}
{"at": "250ms", "for": "40ms", "fault": "partition", "links": {"from": ["db"], "to": ["peer"]}, "mode": "hold"}
{"at": "300ms", "for": "40ms", "fault": "clog", "node": "peer"}
{"at": "350ms", "for": "40ms", "fault": "pause", "node": "peer"}
{"at": "400ms", "for": "30ms", "fault": "power_loss", "node": "db"}
{"at": "405ms", "for": "20ms", "fault": "clog", "node": "db"}
{"at": "410ms", "fault": "bit_rot", "node": "db", "bits": 1}
{"at": "450ms", "fault": "reset", "node": "peer"}
"#;

/// Another fault plan.
const OTHER: &str = r#"
{"at": "30ms", "for": "30ms", "fault": "power_loss", "node": "peer"}
{"at": "50ms", "for": "200ms", "fault": "loss", "links": "all", "ppm": 500000}
{"at": "100ms", "for": "100ms", "fault": "stalls", "node": "db", "every_instructions": 50000, "stall": "3ms"}
"#;

const DURATION_NS: u64 = 1_200 * MS;

/// Asserts that every fault of [`PLAN`] was applied and had an effect.
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
    // The driver prints a line when it starts. Its other lines are errors during the fault `disk_full`, under which
    // writes to blocks that were never written before fail.
    let mut begins = lines(events, "write");
    begins.retain(|line| line.starts_with("begins at "));
    assert_eq!(begins.len(), 2, "the driver starts before the power loss and after it: {begins:?}");
    assert_eq!(lines(events, "fault-12")[0], "custom");
}

#[test]
fn a_plan_gives_one_trail_whatever_else_was_run() {
    // Under this seed the file system can be mounted despite the flipped bit.
    let seed = 3;
    let (launcher, points) = ready(launcher_of(WORLD));
    let (faulty, other) = (under(&launcher, &points, PLAN), under(&launcher, &points, OTHER));
    let mut worker = faulty.start(Seed::new(seed)).unwrap();
    let (trail, events) = run_to_end(&mut worker, DURATION_NS);
    assert_done(&events);

    // The same machines run another plan, then no plan, then the first plan again.
    assert!(other.start_again(&mut worker, Seed::new(seed)).unwrap());
    assert_ne!(run_to_end(&mut worker, DURATION_NS).0, trail);
    assert!(launcher.start_again(&mut worker, Seed::new(seed)).unwrap());
    assert_ne!(run_to_end(&mut worker, DURATION_NS).0, trail);
    assert!(faulty.start_again(&mut worker, Seed::new(seed)).unwrap());
    assert_eq!(run_to_end(&mut worker, DURATION_NS), (trail.clone(), events));
    assert_ne!(
        run_to_end(&mut faulty.start(Seed::new(2)).unwrap(), DURATION_NS).0,
        trail,
        "another seed must give another trail"
    );

    // Runs the plan with small caches and random flushes.
    let options = EngineOptions {
        caches: CacheConfig { tlb_entries: 64, block_entries: 4096, ..CacheConfig::default() },
        flushes: Some(FlushSchedule { interval: 500_000, seed: 3 }),
        ..EngineOptions::default()
    };
    let small = Launcher { options, ..launcher };
    assert_eq!(
        run_to_end(&mut under(&small, &points, PLAN).start(Seed::new(seed)).unwrap(), DURATION_NS).0,
        trail
    );
}

/// Moments are taken with frames and requests in flight, during lasting faults, and while nodes are off, paused or
/// booting.
#[test]
fn moments_during_faults_change_nothing_and_can_be_continued() {
    let (launcher, points) = ready(launcher_of(WORLD));
    let faulty = under(&launcher, &points, PLAN);
    let mut worker = faulty.start(Seed::new(1)).unwrap();
    let (trail, events) = run_to_end(&mut worker, DURATION_NS);
    let pool = Pool::default();
    let mut timeline = faulty.start(Seed::new(1)).unwrap();
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
    assert!(in_flight > 5, "only {in_flight} moments have a disk request in flight");
    for (number, chosen) in stored.into_iter().enumerate().filter(|(number, _)| number % 11 == 4) {
        let from = Launcher { from: Some(Arc::new(chosen)), ..faulty.clone() };
        assert!(from.start_again(&mut worker, Seed::new(1)).unwrap());
        worker.run(&Until::vtime(end_ns.min(worker.vtime() + 250 * MS)));
        let points = worker.trail().points();
        assert_eq!(points, &trail.points()[..points.len()], "moment {number}");
    }
}

/// World with a machine that prints the state in which it starts.
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
fn a_warm_restart_equals_a_cold_one_and_executes_less() {
    let (launcher, points) = ready(launcher_of(RESTARTED));
    let of = |restart: &str| {
        let plan = format!(
            r#"{{"at": "300ms", "for": "50ms", "fault": "power_loss", "node": "a", "restart": "{restart}"}}"#
        );
        let mut timeline = under(&launcher, &points, &plan).start(Seed::new(1)).unwrap();
        let events = run_to_end(&mut timeline, 1_500 * MS).1;
        assert!(findings(&events).is_empty(), "{restart}: {:?}", findings(&events));
        let said: Vec<String> = lines(&events, "say").into_iter().map(str::to_owned).collect();
        assert_eq!(said.len(), 8, "{restart}: {said:?}");
        let mut started =
            events.iter().filter(|e| matches!(&e.what, What::Start { unit, .. } if unit == "say"));
        (said, started.next_back().unwrap().vtime_ns, timeline.icount())
    };
    let (warm, warm_ns, warm_count) = of("warm");
    let (cold, cold_ns, cold_count) = of("cold");
    // The two timelines are equal up to the power loss, and the disk has the same content after it.
    assert_eq!(warm[..4], cold[..4]);
    assert_eq!(warm[4..7], cold[4..7]);
    assert!(warm[4].starts_with("up 0, disk ") && warm[4].ends_with(", memory "), "{}", warm[4]);
    assert_eq!(warm[5], "recovered 1");
    assert!(warm[7] != warm[3] && cold[7] != cold[3], "each boot must have an ID of its own");
    // A cold restart executes the boot, and a warm restart restores the state after a boot. Both take about the same
    // vtime.
    let apart_ns = warm_ns.abs_diff(cold_ns);
    assert!(apart_ns < 20 * MS, "the restarts differ by {} ms", apart_ns / MS);
    assert!(
        warm_count + 300_000_000 < cold_count,
        "{warm_count} instructions with a warm restart, {cold_count} with a cold one"
    );
}

/// World with an idle machine, and a machine with a service and with a driver that prints a line on the console and
/// then computes.
const LATE: &str = r#"
[[node]]
name = "a"
memory = "96M"
[[node.service]]
name = "rest"
argv = ["sleep", "1000"]
[[workload.driver]]
name = "busy"
node = "a"
repeat = true
argv = ["sh", "-c", "echo last words > /dev/console; while :; do :; done"]
[[node]]
name = "b"
memory = "96M"
"#;

/// A warm restart skips the boot: it puts a machine at once into its state after the boot. The machine's vtime is then
/// ahead of the world's vtime by the duration of the boot. Faults and the timeline's end must still come when the world
/// reaches their vtimes.
#[test]
fn after_a_restart_faults_and_the_end_come_in_time() {
    let alone = LATE.split("[[node]]\nname = \"b\"").next().unwrap();
    let (launcher, points) = ready(launcher_of(alone));
    let root_ns = launcher.from.as_ref().unwrap().session.ready_ns().unwrap();
    let plan = r#"
{"at": "140ms", "fault": "reset", "node": "a"}
{"at": "180ms", "for": "10ms", "fault": "clog", "node": "a"}
"#;
    let launcher = under(&launcher, &points, plan);
    let events = run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), 200 * MS).1;
    let at = |wanted: &dyn Fn(&What) -> bool| {
        events.iter().find(|event| wanted(&event.what)).map(|event| event.vtime_ns - root_ns)
    };
    assert_eq!(at(&|what| matches!(what, What::Fault { id: 1, .. })), Some(180 * MS));
    assert_eq!(at(&|what| matches!(what, What::End)), Some(200 * MS));
    assert_eq!(findings(&events), Vec::<&str>::new());
    // Console output from before the reset is kept.
    let mut timeline = launcher.start(Seed::new(1)).unwrap();
    timeline.run(&Until::vtime(root_ns + 170 * MS));
    let console = timeline.machine_mut(0).output().take_console();
    assert!(String::from_utf8_lossy(&console).contains("last words"));
}

#[test]
fn a_slow_cpu_stays_slow_after_a_restart() {
    let (launcher, points) = ready(launcher_of(LATE));
    let count = |more: &str| {
        let plan = r#"{"at": "50ms", "for": "20ms", "fault": "power_loss", "node": "a"}"#;
        let launcher = under(&launcher, &points, &format!("{more}\n{plan}"));
        let mut timeline = launcher.start(Seed::new(1)).unwrap();
        let before = timeline.world().nodes()[0].retired();
        let events = run_to_end(&mut timeline, 1_100 * MS).1;
        assert_eq!(findings(&events), Vec::<&str>::new());
        timeline.world().nodes()[0].retired() - before
    };
    let slow = count(r#"{"at": "45ms", "for": "1050ms", "fault": "slow_cpu", "node": "a", "ppm": 100000}"#);
    let whole = count("");
    assert!(2 * slow < whole, "{slow} instructions on the slow CPU, and {whole} at full speed");
}

#[test]
fn a_machine_that_ends_under_faults_ends_the_run() {
    let (launcher, points) = ready(launcher_of(LATE));
    let plan = r#"
{"at": "20ms", "for": "400ms", "fault": "priorities", "node": "a", "unit": "rest", "every": "5ms"}
{"at": "60ms", "fault": "command", "node": "a", "argv": ["sh", "-c", "echo o > /proc/sysrq-trigger"]}
"#;
    let events = run_to_end(&mut under(&launcher, &points, plan).start(Seed::new(1)).unwrap(), 500 * MS).1;
    assert!(
        findings(&events).iter().any(|text| text.contains("the machine stopped")),
        "{:?}",
        findings(&events)
    );
}

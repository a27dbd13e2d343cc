//! Tests of several nodes on a network: they find each other, and the world repeats to the bit.

use std::sync::Arc;

use everett_cpu::CacheConfig;
use everett_session::machines::EngineOptions;
use everett_session::run::launch::Launcher;
use everett_session::world::conversation::Phase;
use everett_session::world::event::{Event, What};
use everett_session::world::moments::Stored;
use everett_snapshot::Pool;
use everett_streams::Seed;
use everett_vmm::engine::soft::FlushSchedule;
use everett_vmm::machine::Until;

use crate::support::{MS, findings, launcher_of, lines, run_to_end};

/// World with a server, a client that increments a counter on it, and a third node on which only a check runs.
const WORLD: &str = r#"
[[node]]
name = "server"
memory = "128M"
service = ["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no"]
[[node]]
name = "client"
memory = "96M"
[[node]]
name = "idle"
memory = "96M"
[[workload.driver]]
name = "count"
node = "client"
argv = ["sh", "-c", "while redis-cli -h server ping | grep -q PONG || sleep 0.05; do redis-cli -h server incr n; done"]
[[workload.check]]
name = "hosts"
node = "idle"
argv = ["sh", "-c", "getent hosts server client idle && redis-cli -h server get n"]
[[workload.check]]
name = "counted"
node = "client"
argv = ["sh", "-c", "test $(redis-cli -h server get n) -gt 3"]
"#;

const DURATION_NS: u64 = 400 * MS;

fn run(launcher: &Launcher, seed: u64) -> (everett_vmm::Trail, Vec<everett_session::world::event::Event>) {
    run_to_end(&mut launcher.start(Seed::new(seed)).unwrap(), DURATION_NS)
}

#[test]
fn nodes_talk_and_the_world_repeats() {
    let launcher = launcher_of(WORLD);
    let (trail, events) = run(&launcher, 1);
    assert!(findings(&events).is_empty(), "{:?}", findings(&events));
    let hosts = lines(&events, "hosts");
    assert_eq!(hosts[..3], ["10.0.0.1        server", "10.0.0.2        client", "10.0.0.3        idle"]);
    let counts: Vec<u64> = lines(&events, "count").iter().filter_map(|line| line.parse().ok()).collect();
    assert!(counts.len() > 3 && counts.is_sorted(), "{counts:?}");

    // The timeline stays the same with small caches and random flushes, and if it runs in pieces and is stored and
    // restored between them.
    let options = EngineOptions {
        caches: CacheConfig { tlb_entries: 64, block_entries: 4096, ..CacheConfig::default() },
        flushes: Some(FlushSchedule { interval: 500_000, seed: 3 }),
        ..EngineOptions::default()
    };
    assert_eq!(run(&Launcher { options, ..launcher.clone() }, 1).0, trail);
    let pool = Pool::default();
    let mut timeline = launcher.start(Seed::new(1)).unwrap();
    timeline.end_after(DURATION_NS);
    let end_ns = trail.points().last().unwrap().0;
    let (mut stored, mut told, mut step) = (Vec::new(), Vec::new(), 0);
    while timeline.vtime() < end_ns {
        step += 1;
        // This step is no multiple of a round, i.e. of the vtime that nodes run between two exchanges of frames. So
        // some stops are in the middle of a round, with frames in flight.
        timeline.run(&Until::vtime((timeline.vtime() + 9_999_991).min(end_ns)));
        told.append(&mut timeline.take_events());
        if step % 7 == 0 {
            stored.push(Stored::of(&mut timeline, &pool, told.clone(), vec![Vec::new(); 3]));
        }
    }
    assert_eq!((timeline.trail(), &told), (&trail, &events));
    let mut worker = launcher.start(Seed::new(1)).unwrap();
    let options = EngineOptions::default();
    for (number, chosen) in stored.into_iter().enumerate().filter(|(number, _)| number % 3 == 1) {
        let from = Launcher { from: Some(Arc::new(chosen)), options, ..launcher.clone() };
        if number % 2 == 0 {
            worker = from.start(Seed::new(1)).unwrap();
        } else {
            assert!(from.start_again(&mut worker, Seed::new(1)).unwrap());
        }
        let to_ns = end_ns.min(worker.vtime() + 150 * MS);
        worker.run(&Until::vtime(to_ns));
        let points = worker.trail().points();
        assert_eq!(points, &trail.points()[..points.len()], "moment {number}");
    }
}

#[test]
fn another_seed_is_another_world() {
    let launcher = launcher_of(WORLD);
    let (one, other) = (run(&launcher, 1).0, run(&launcher, 2).0);
    let same = one.points().iter().zip(other.points()).take_while(|(a, b)| a == b).count();
    assert!(
        same > 0 && same < one.points().len(),
        "{same} points are equal: those of the boots must be, and the rest must not"
    );
}

/// Checks to append to [`WORLD`]. Everett makes most of them itself, over the network. The others run commands on
/// nodes.
const TALKS: &str = r#"
[[workload.check]]
name = "outside"
node = "server"
tcp = 6379
send = "GET n\r\nPING\r\n"
expect = "+PONG\r\n"
[[workload.check]]
name = "refused"
node = "client"
tcp = 6379
[[workload.check]]
name = "another"
node = "server"
tcp = 6379
send = "NONSENSE\r\n"
expect = "+OK"
timeout = "30ms"
[[workload.check]]
name = "connected"
node = "server"
tcp = 6379
[[workload.check]]
name = "last"
node = "idle"
argv = ["echo", "the host is gone"]
"#;

#[test]
fn the_host_talks_to_nodes() {
    let launcher = launcher_of(&format!("{WORLD}{TALKS}"));
    let (trail, events) = run(&launcher, 1);
    assert_eq!(
        findings(&events),
        [
            "check refused: the node did not accept the connection",
            "check another: the expected answer did not come in time",
        ]
    );
    let outside = lines(&events, "outside");
    assert!(matches!(outside[..], [length, _, "+PONG"] if length.starts_with('$')), "{outside:?}");
    assert!(outside[1].parse::<u64>().unwrap() > 3, "{outside:?}");
    assert!(lines(&events, "another")[0].starts_with("-ERR unknown command"));
    assert_eq!(lines(&events, "last"), ["the host is gone"]);
    let ends = |unit: &str| {
        events.iter().find_map(|event| match &event.what {
            What::Exit { unit: name, success, .. } if name == unit => Some(*success),
            _ => None,
        })
    };
    let units = ["hosts", "outside", "refused", "another", "connected", "last"];
    assert_eq!(units.map(ends), [true, true, false, false, true, true].map(Some));

    // Takes moments during the checks over the network, and continues from each. The moments are 0.8 ms apart until 10
    // ms after the start of check `another`. Then they are 8 ms apart, because this check then only waits 20 ms more
    // for an answer that never comes.
    let starts = |event: &&Event| matches!(&event.what, What::Start { unit, .. } if unit == "another");
    let within = events.iter().find(starts).unwrap().vtime_ns + 10 * MS;
    let first =
        events.iter().find(|event| matches!(&event.what, What::Start { unit, .. } if unit == "outside"));
    let mut at_ns = first.unwrap().vtime_ns;
    let mut timeline = launcher.start(Seed::new(1)).unwrap();
    timeline.end_after(DURATION_NS);
    let (pool, mut stored, mut so_far) = (Pool::default(), Vec::new(), Vec::new());
    loop {
        timeline.run(&Until::vtime(at_ns));
        if timeline.phase() == Phase::Done {
            break;
        }
        so_far.append(&mut timeline.take_events());
        stored.push(Stored::of(&mut timeline, &pool, so_far.clone(), vec![Vec::new(); 3]));
        at_ns += if at_ns < within { 777_777 } else { 7_777_777 };
    }
    let talks = stored.iter().filter(|stored| stored.session.talks()).count();
    assert!(talks > 10, "only {talks} of {} moments have an open connection", stored.len());
    let mut worker = launcher.start(Seed::new(1)).unwrap();
    for (number, stored) in stored.into_iter().enumerate() {
        let from = Launcher { from: Some(Arc::new(stored)), ..launcher.clone() };
        if number % 2 == 0 {
            worker = from.start(Seed::new(1)).unwrap();
        } else {
            assert!(from.start_again(&mut worker, Seed::new(1)).unwrap());
        }
        assert_eq!(run_to_end(&mut worker, DURATION_NS), (trail.clone(), events.clone()), "moment {number}");
    }

    // The timeline is the same if it runs in many pieces.
    let mut timeline = launcher.start(Seed::new(1)).unwrap();
    timeline.end_after(DURATION_NS);
    let end_ns = trail.points().last().unwrap().0;
    while timeline.vtime() < end_ns {
        timeline.run(&Until::vtime((timeline.vtime() + 777_777).min(end_ns)));
    }
    assert_eq!(timeline.trail(), &trail);
}

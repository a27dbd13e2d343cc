//! Tests of the end of the workload: when it comes, and the pause between it and the checks.

use everett_session::world::event::{Event, What};
use everett_session::world::identity::Identity;
use everett_streams::Seed;
use everett_vmm::machine::Until;

use crate::support::{MS, findings, launcher_of, ready, run_to_end, run_until_done, under};

/// World with a balancer that polls its server every half second, and a check that asks the balancer for the server's
/// state.
const BALANCER: &str = r#"
[workload]
SETTLE
[[node]]
name = "front"
memory = "96M"
[[node.service]]
name = "balancer"
argv = ["bash", "-c", '''
while :; do
    timeout 0.2 bash -c '< /dev/tcp/back/6379' 2> /dev/null && echo up > /tmp/state || echo down > /tmp/state
    sleep 0.5
done
''']
[[node]]
name = "back"
memory = "128M"
[[node.service]]
name = "redis"
argv = ["redis-server", "--protected-mode", "no", "--save", ""]
ready = { tcp = 6379, send = "PING\r\n", expect = "+PONG" }
[[workload.check]]
name = "served"
node = "front"
argv = ["grep", "up", "/tmp/state"]
"#;
const PLAN: &str = r#"{"at": "1s", "for": "2s", "fault": "power_loss", "node": "back"}"#;

/// Returns the vtime at which the workload ended.
fn end_of(events: &[Event]) -> u64 {
    events.iter().find(|event| matches!(event.what, What::End)).unwrap().vtime_ns
}

/// Returns the vtime at which the workload ended, and the vtime at which the next process (a check) started.
fn end_and_next(events: &[Event]) -> (u64, u64) {
    let end = events.iter().position(|event| matches!(event.what, What::End)).unwrap();
    let next = events[end..].iter().find(|event| matches!(event.what, What::Start { .. })).unwrap();
    (events[end].vtime_ns, next.vtime_ns)
}

#[test]
fn a_world_that_settles_in_time_has_no_finding() {
    let run = |settle: &str| {
        let (launcher, points) = ready(launcher_of(&BALANCER.replace("SETTLE", settle)));
        let (_, events) =
            run_to_end(&mut under(&launcher, &points, PLAN).start(Seed::new(1)).unwrap(), 3_000 * MS);
        let back = events.iter().rfind(|event| matches!(event.what, What::Ready)).unwrap().vtime_ns;
        (findings(&events).len(), end_and_next(&events).1 - back)
    };
    let (found, after_ns) = run("settle = \"0s\"");
    assert!(
        found == 1 && after_ns < 100 * MS,
        "{found} findings; the checks began {after_ns} ns after the node was ready"
    );
    let (found, after_ns) = run("");
    assert!(
        found == 0 && (2_000 * MS..2_100 * MS).contains(&after_ns),
        "{found} findings; the checks began {after_ns} ns after the node was ready"
    );
    let (found, after_ns) = run("settle = \"5s\"");
    assert!(
        found == 0 && (5_000 * MS..5_100 * MS).contains(&after_ns),
        "{found} findings; the checks began {after_ns} ns after the node was ready"
    );
}

#[test]
fn the_settling_time_is_part_of_the_timeline_and_not_of_its_boot() {
    let of = |settle: &str| {
        let world = launcher_of(&BALANCER.replace("SETTLE", settle)).world;
        let image = ["image".to_owned()];
        (Identity::new(&world, &image), Identity::of_boot(&world, &image))
    };
    let (usual, short) = (of(""), of("settle = \"1s\""));
    assert_eq!(usual, of("settle = \"2s\""));
    assert_ne!(usual.0, short.0);
    assert_eq!(usual.1, short.1);
}

/// World with two machines whose drivers end by themselves.
const NAPS: &str = r#"
[[node]]
name = "a"
memory = "96M"
[[node]]
name = "b"
memory = "96M"
[[workload.driver]]
name = "short"
node = "a"
argv = ["sleep", "0.3"]
[[workload.driver]]
name = "long"
node = "b"
argv = ["sleep", "1.1"]
"#;

fn end_and_last_exit(events: &[Event]) -> (u64, u64) {
    let end = end_of(events);
    let exit = events.iter().rfind(|event| matches!(event.what, What::Exit { .. })).unwrap().vtime_ns;
    (end, exit)
}

#[test]
fn the_workload_is_over_when_its_drivers_have_ended() {
    let (launcher, points) = ready(launcher_of(NAPS));
    let (trail, events) = run_until_done(&mut launcher.start(Seed::new(1)).unwrap());
    let (end, exit) = end_and_last_exit(&events);
    assert!((exit..exit + MS).contains(&end), "{exit}, {end}");
    assert!(end - events[0].vtime_ns < 5_000 * MS);

    // The timeline is the same if it runs in pieces.
    let mut pieces = launcher.start(Seed::new(1)).unwrap();
    pieces.end_when_done(60_000 * MS);
    let last_ns = trail.points().last().unwrap().0;
    while pieces.vtime() < last_ns {
        pieces.run(&Until::vtime((pieces.vtime() + 3_333_333).min(last_ns)));
    }
    let events = pieces.take_events();
    assert_eq!((pieces.trail(), end_and_last_exit(&events)), (&trail, (end, exit)));

    // The workload ends after the last fault of the plan. A driver that a power loss killed does not restart.
    let plan = r#"
{"at": "600ms", "for": "50ms", "fault": "power_loss", "node": "b"}
{"at": "2s", "for": "1s", "fault": "pause", "node": "a"}
"#;
    let mut timeline = under(&launcher, &points, plan).start(Seed::new(1)).unwrap();
    let (_, events) = run_until_done(&mut timeline);
    let since_ready = end_and_last_exit(&events).0 - timeline.ready_ns().unwrap();
    assert!((3_000 * MS..3_001 * MS).contains(&since_ready), "{since_ready}");
    assert_eq!(findings(&events), Vec::<&str>::new());
}

#[test]
fn a_workload_that_is_not_done_ends_at_its_bound() {
    let launcher = launcher_of(&NAPS.replace("1.1", "100"));
    let mut timeline = launcher.start(Seed::new(1)).unwrap();
    timeline.end_when_done(2_000 * MS);
    timeline.run(&Until::vtime(30_000 * MS));
    assert!(timeline.was_not_done());
    assert_eq!(end_of(&timeline.take_events()) - timeline.ready_ns().unwrap(), 2_000 * MS);
}

//! Scheduling faults: they override the guest's scheduler, i.e. which thread runs and for how long.

use everett_session::run::launch::Launcher;
use everett_session::world::event::What;
use everett_streams::Seed;

use crate::support::{MS, findings, launcher_of, lines, ready, run_to_end, under};

/// World with two threads that lose an addition only if one of them is preempted between two lines.
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
    let (launcher, points) = ready(launcher_of(RACE));
    let counted = |launcher: &Launcher, seed: u64| -> u32 {
        let events = run_to_end(&mut launcher.start(Seed::new(seed)).unwrap(), 60_000 * MS).1;
        let line = lines(&events, "race").first().copied().unwrap_or_default().to_owned();
        line.strip_prefix("counted ").and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{events:?}"))
    };
    let seeds = 1..=4;
    assert!(
        seeds.clone().all(|seed| counted(&launcher, seed) == 400),
        "without the fault no seed may reach the race"
    );
    let stalls = r#"{"at": "0s", "for": "55s", "fault": "stalls", "node": "a", "every_instructions": 20000, "stall": {"uniform": ["1ms", "10ms"]}}"#;
    let stalled = under(&launcher, &points, stalls);
    assert!(seeds.clone().any(|seed| counted(&stalled, seed) < 400), "no seed reaches the race under stalls");
}

/// World with two processes that compute and sometimes print a line.
const UNFAIR: &str = r#"
[[node]]
name = "a"
memory = "96M"
[[node.service]]
name = "both"
argv = ["sh", "-c", '''
count() { n=0; while :; do n=$((n + 1)); [ $((n % 1000)) != 0 ] || echo $1; done; }
count one & count two & wait
''']
[[workload.driver]]
name = "ordinary"
argv = ["sh", "-c", "while sleep 0.02; do echo here; done"]
"#;

#[test]
fn of_two_processes_that_compute_the_one_with_the_higher_priority_runs() {
    let (launcher, points) = ready(launcher_of(UNFAIR));
    let longest = |said: &[&str]| said.chunk_by(|a, b| a == b).map(<[&str]>::len).max().unwrap_or(0);
    let fair = longest(&lines(&run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), 1_500 * MS).1, "both"));
    let plan = r#"{"at": "100ms", "for": "1s", "fault": "priorities", "node": "a", "unit": "both", "every": "200ms"}"#;
    let events = run_to_end(&mut under(&launcher, &points, plan).start(Seed::new(1)).unwrap(), 1_500 * MS).1;
    let healed = events.iter().position(|event| matches!(event.what, What::Healed { .. })).unwrap();
    let (during, after) = events.split_at(healed);
    let during = lines(during, "both");
    assert!(
        longest(&during) > 4 * fair,
        "the longest series of lines of one process has {} lines, and {fair} without the fault",
        longest(&during)
    );
    // The fault draws new priorities every 200 ms, so there are several long series of lines of one process. After the
    // fault, the processes have normal priorities again and alternate.
    let turns = during.chunk_by(|a, b| a == b).filter(|said| said.len() > 2 * fair).count();
    assert!(turns > 1, "{turns} long series of lines of one process: {during:?}");
    let last = lines(after, "both");
    assert!(
        last.len() > 10 && longest(&last) <= fair + 1,
        "the processes do not alternate again at the end: {last:?}"
    );
    assert_eq!(findings(after), Vec::<&str>::new());
}

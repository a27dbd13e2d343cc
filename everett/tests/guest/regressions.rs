//! Tests of regression files whose world has changed since they were written, so that the finding comes on an earlier
//! branch of the path.

use std::fs;
use std::path::Path;
use std::process::Output;

use everett_explorer::run::Header;
use serde_json::{Value, json};

use crate::explore::TestFolder;
use crate::support::{MS, image, shown};

/// World whose only program counts and prints each number. The path in [`replayed`] forks at the root moment and 200
/// ms later.
const WORLD: &str = r#"
[[node]]
name = "db"
memory = "96M"
[[workload.driver]]
name = "counts"
argv = ["sh", "-c", "n=0; while :; do n=$((n+1)); echo number $n; sleep 0.01; done"]
[[property]]
name = "no five"
never = "^number 5$"
[[property]]
name = "no zero"
never = "^number 0$"
[explore]
segment = "200ms"
horizon = "1s"
in_flight = 4
checks = 200000
[faults]
only = ["reseed"]
"#;

/// Replays a regression file whose path has two forks, for a finding of `property`. The timeline ID in the file belongs
/// to another world, so Everett does not compare the trail.
fn replayed(place: &TestFolder, property: &str, plan: &[Value]) -> Output {
    let root_ns = Header::read(Path::new(&place.path("run"))).expect("the run directory").root_ns;
    let file = place.path("regression.json");
    let regression = json!({
        "schema_version": 1,
        "world": "world.toml",
        "timeline": "e3:0:0/",
        "trail": "",
        "seed": 3,
        "path": format!("{root_ns}.1/{}.1", root_ns + 200 * MS),
        "for_ns": 400 * MS,
        "checked": false,
        "plan": plan,
        "property": property,
        "text": "",
    });
    fs::write(&file, regression.to_string()).unwrap();
    place.everett(&["replay", &file, "-q"])
}

/// Returns a folder with the world and a run directory, whose header has the vtime of the root moment.
fn explored() -> TestFolder {
    image();
    let place = TestFolder::new(WORLD);
    let output =
        place.everett(&["explore", &place.path("world.toml"), "--branches", "1", "-o", &place.path("run")]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", shown(&output));
    place
}

/// The branch in which the finding comes reports it. Later branches do not report it again.
#[test]
fn a_finding_before_the_last_fork_is_still_there() {
    let place = explored();
    let there = replayed(&place, "no five", &[]);
    assert_eq!(there.status.code(), Some(1), "{}", shown(&there));
    assert!(shown(&there).contains("no five: number 5"), "{}", shown(&there));
    let gone = replayed(&place, "no zero", &[]);
    assert_eq!(gone.status.code(), Some(0), "{}", shown(&gone));
    assert!(shown(&gone).contains("no zero is not violated"), "{}", shown(&gone));
}

/// The machine stops before the second fork. A replay shows a finding that comes before the stop. For any other finding
/// the replay ends with an error, because the finding might have come later.
#[test]
fn a_route_ends_with_its_machines() {
    let place = explored();
    let panics = json!({
        "at": "50ms", "fault": "command", "node": "db", "argv": ["sh", "-c", "echo c > /proc/sysrq-trigger"],
    });
    let there = replayed(&place, "kernel panic", std::slice::from_ref(&panics));
    assert_eq!(there.status.code(), Some(1), "{}", shown(&there));
    let unknown = replayed(&place, "no zero", &[panics]);
    assert_eq!(unknown.status.code(), Some(2), "{}", shown(&unknown));
    let why = "it ended early, on branch 1 of the 2 of its path";
    assert!(shown(&unknown).contains(why), "{}", shown(&unknown));
}

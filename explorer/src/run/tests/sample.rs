//! Sample contents of a run directory: a header and records. Tests of `everett-report` use them, too.

use std::collections::BTreeMap;

use everett_explorer::composer::{Counts, Tally};
use everett_explorer::coverage::{Delta, Point};
use everett_explorer::run::{Evidence, Header, Hit, Record, StrategyName};
use everett_explorer::search::Path;
use everett_streams::Seed;
use serde_json::json;

pub(crate) const ROOT_NS: u64 = 1_000;

pub(crate) fn header() -> Header {
    Header {
        everett: "0.1.0".to_owned(),
        machine_version: "1".to_owned(),
        identity: "3d016600".to_owned(),
        image: "77aa".to_owned(),
        world_file: "etcd.toml".to_owned(),
        world: json!({ "node": [{ "name": "n1", "memory": 1024 }, { "name": "n2", "memory": 1024 }] }),
        seed: Seed::new(7),
        strategy: StrategyName("novelty".to_owned()),
        in_flight: 4,
        root_ns: ROOT_NS,
        segment_ns: 2_000_000_000,
        horizon_ns: 30_000_000_000,
        nodes: vec!["n1".to_owned(), "n2".to_owned()],
        ..Header::default()
    }
}

/// Returns the delta (coverage points of one branch) with these points, each reached at the given vtime.
pub(crate) fn delta(points: &[(Point, u64)]) -> Delta {
    let entry = |(point, vtime_ns): &(Point, u64)| {
        (point.id().to_string(), json!({ "point": point, "vtime_ns": vtime_ns }))
    };
    let points: serde_json::Map<_, _> = points.iter().map(entry).collect();
    serde_json::from_value(json!({ "points": points, "overflow": 0, "strange": 0 })).unwrap()
}

pub(crate) fn state(state: &str) -> Point {
    Point::State { state: state.to_owned() }
}

pub(crate) fn hit(property: &str, signature: &str, vtime_ns: u64) -> Hit {
    Hit {
        property: property.to_owned(),
        signature: signature.to_owned(),
        text: format!("{signature} was seen"),
        vtime_ns,
        node: Some("n1".to_owned()),
        evidence: Evidence {
            lines: vec!["a line".to_owned()],
            packets: Vec::new(),
            faults: vec!["loss".to_owned()],
        },
    }
}

/// Returns the tally (counts of starts and results) of these commands of a test template. Each command comes with its
/// numbers of starts, successes and failures.
pub(crate) fn tally(commands: &[(&str, [u64; 3])]) -> Tally {
    let counts = |&(name, [started, succeeded, failed]): &(&str, [u64; 3])| {
        (name.to_owned(), Counts { started, succeeded, failed })
    };
    Tally::try_from(commands.iter().map(counts).collect::<BTreeMap<_, _>>()).unwrap()
}

/// Returns the record of a branch without findings. It took one second of vtime, 10 instructions and 100 ns of CPU
/// time.
pub(crate) fn record(choice: u64, from: Option<u64>, path: &str) -> Record {
    let path: Path = path.parse().unwrap();
    let end_ns = path.forks().last().map_or(0, |fork| fork.vtime_ns) + 1_000_000_000;
    Record {
        choice,
        from,
        path,
        open_ns: Some(end_ns),
        end_ns,
        instructions: 10,
        executed: 10,
        cpu_ns: 100,
        trail: "00ff".to_owned(),
        marks: (1..=20).map(|at| (at, format!("{at:016x}"))).collect(),
        faults: 1,
        messages: 20,
        delta: delta(&[(state(&format!("s{}", choice % 3)), end_ns)]),
        log_bytes: 5,
        ..Record::default()
    }
}

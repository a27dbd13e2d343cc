//! Two processes and one run directory. A program of its own: for a moment a process that is started holds whatever locks its
//! starter holds, and no other test is to be in the middle of something then.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use everett_explorer::run::{Header, Journal, Reading, SCHEMA_VERSION, StrategyName};
use tempfile::tempdir;

/// Which run the other process is to hold.
const HELD: &str = "EVERETT_TEST_RUN_HELD";

fn header() -> Header {
    Header {
        schema_version: SCHEMA_VERSION,
        everett: "0.1.0".to_owned(),
        machine_version: "1".to_owned(),
        identity: "3d016600".to_owned(),
        image: "77aa".to_owned(),
        world_file: "etcd.toml".to_owned(),
        world: serde_json::json!({}),
        seed: 7,
        strategy: StrategyName("novelty".to_owned()),
        in_flight: 4,
        root_ns: 1_000,
        segment_ns: 2_000_000_000,
        horizon_ns: 30_000_000_000,
        nodes: vec!["n1".to_owned()],
        engine: "soft".to_owned(),
        exact: true,
    }
}

/// Not a test unless the other one starts it: begins a run and holds it until it is killed.
#[test]
fn the_other_process() {
    let Some(run) = std::env::var_os(HELD) else { return };
    let _journal = Journal::create(Path::new(&run), &header()).unwrap();
    println!("\nheld");
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_run_has_one_writer() {
    let folder = tempdir().unwrap();
    let run = folder.path().join("run");
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_other_process", "--nocapture"])
        .env(HELD, &run)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(other.stdout.take().unwrap()).lines();
    let held = lines.map(Result::unwrap).any(|line| line == "held");
    let found = Journal::resume(&run, &header()).map(drop);
    let looked = Reading::open(&run).map(|reading| reading.len());
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(held);
    let error = found.unwrap_err().to_string();
    assert_eq!(error, format!("{} is in use: another process explores there", run.display()));
    assert_eq!(looked.unwrap(), 0, "looking is free");
    assert!(Journal::resume(&run, &header()).unwrap().is_empty(), "and the dead hold nothing");
}

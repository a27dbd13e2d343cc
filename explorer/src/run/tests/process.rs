//! Two processes, one of which is killed.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use super::*;

/// Which run the other process is to hold.
const HELD: &str = "EVERETT_TEST_RUN_HELD";

/// Not a test unless another one starts it: begins a run and holds it until it is killed.
#[test]
fn the_other_process() {
    let Some(run) = std::env::var_os(HELD) else { return };
    let mut journal = Journal::create(File::new(&run), &header()).unwrap();
    journal.append(&row(1)[0]).unwrap();
    println!("\nheld");
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_run_has_one_writer() {
    let folder = tempdir().unwrap();
    let run = folder.path().join("run");
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "run::tests::process::the_other_process", "--nocapture"])
        .env(HELD, &run)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(other.stdout.take().unwrap()).lines();
    let held = lines.map(Result::unwrap).any(|line| line == "held");
    let found = Journal::resume(&run).map(drop);
    let looked = Reading::open(&run).map(|reading| all(reading.records()));
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(held);
    let error = told(&found.unwrap_err(), &run);
    assert_eq!(error, "RUN is in use: another process explores there");
    assert_eq!(looked.unwrap(), row(1), "looking is free");
    let (journal, _) = Journal::resume(&run).unwrap();
    assert_eq!(all(journal.records()), row(1));
}

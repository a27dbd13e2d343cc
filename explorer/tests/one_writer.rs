//! Test that two processes cannot write the same run directory.
//!
//! The test is a program of its own, because a newly forked child process briefly holds its parent's file locks, which
//! would disturb other tests of the same program. The second process runs this program again. An environment variable
//! tells `main` that it runs in the second process.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use everett_explorer::run::{Header, Journal, Reading};
use libtest_mimic::{Arguments, Trial};
use tempfile::tempdir;

/// Environment variable with the run directory that the second process locks. The first process does not have the
/// variable.
const HELD: &str = "EVERETT_TEST_RUN_HELD";

fn main() -> ExitCode {
    if let Some(run) = std::env::var_os(HELD) {
        hold(Path::new(&run));
        return ExitCode::SUCCESS;
    }
    let one_writer = Trial::test("a_run_has_one_writer", || {
        a_run_has_one_writer();
        Ok(())
    });
    libtest_mimic::run(&Arguments::from_args(), vec![one_writer]).exit_code()
}

fn header() -> Header {
    Header { identity: "3d016600".to_owned(), nodes: vec!["n1".to_owned()], ..Header::default() }
}

/// Creates a run and holds its lock until this process is killed or its standard input ends.
fn hold(run: &Path) {
    let _journal = Journal::create(run, &header()).unwrap();
    println!("held");
    let _ = std::io::stdin().read(&mut [0]);
}

fn a_run_has_one_writer() {
    let folder = tempdir().unwrap();
    let run = folder.path().join("run");
    let mut other = Command::new(std::env::current_exe().unwrap())
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
    assert_eq!(looked.unwrap(), 0, "a reader must not need the lock");
    assert!(Journal::resume(&run, &header()).unwrap().is_empty(), "a killed process must not hold the lock");
}

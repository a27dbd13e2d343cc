//! Tests that an exploration gives the same result if its process is killed and started again several times. This is a
//! short form of the bench `night`. Branches are not executed: a script computes their results. The killed process is a
//! second instance of this program, which `main` recognizes by an environment variable.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use benches::night::{self, Scripted};
use everett_explorer::run::{EndReason, Reading};
use everett_explorer::search::strategy::StrategyKind;
use libtest_mimic::{Arguments, Trial};

const BRANCHES: u64 = 1_500;
/// Upper bound on the mean size of a branch on the disk, in bytes.
const BRANCH_BYTES_MAX: u64 = 2_000;
/// Environment variable for the killed process: the folder in which it explores.
const FOLDER: &str = "EVERETT_TEST_NIGHT";
/// Environment variable for the killed process: the number of branches after which it reports.
const MOST: &str = "EVERETT_TEST_NIGHT_BRANCHES";
/// Number of branches that the process runs after its report. Then it stops and waits to be killed.
const MORE: u64 = 40;

fn main() -> ExitCode {
    if let Some(folder) = std::env::var_os(FOLDER) {
        explore_until_killed(Path::new(&folder));
        return ExitCode::SUCCESS;
    }
    let night = Trial::test("a_night_that_is_killed_ends_as_one_that_is_not", || {
        a_night_that_is_killed_ends_as_one_that_is_not();
        Ok(())
    });
    libtest_mimic::run(&Arguments::from_args(), vec![night]).exit_code()
}

/// Runs the exploration in the second instance of this program, until the first instance kills it.
fn explore_until_killed(folder: &Path) {
    let mut journal = night::journal(folder, StrategyKind::Novelty).unwrap();
    let mut scripted = Scripted::new(1_000);
    let most: u64 = std::env::var(MOST).unwrap().parse().unwrap();
    scripted.on_result = Box::new(move |results| {
        if results == most {
            println!("there");
            std::io::stdout().flush().unwrap();
        }
        if results == most + MORE {
            let _ = std::io::stdin().read(&mut [0]);
        }
    });
    scripted.explore(Some(&mut journal), StrategyKind::Novelty, BRANCHES).unwrap();
}

fn a_night_that_is_killed_ends_as_one_that_is_not() {
    let whole = Scripted::new(1_000).explore(None, StrategyKind::Novelty, BRANCHES).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let stops = [1, 63, 64, 65, 300, 500];
    for most in stops {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(FOLDER, &run)
            .env(MOST, most.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let there = lines.map(Result::unwrap).any(|line| line == "there");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(there, "the process did not report {most} branches");
    }
    let before = Reading::open(&run).unwrap().len();
    // The branch that a killed process reported last may be missing on the disk.
    let least: u64 = stops.iter().map(|most| most - 1).sum();
    let most = least + stops.len() as u64 * (MORE + 1);
    assert!((least..=most).contains(&before), "{before} branches are recorded");
    let mut journal = night::journal(&run, StrategyKind::Novelty).unwrap();
    let outcome = Scripted::new(1_000).explore(Some(&mut journal), StrategyKind::Novelty, BRANCHES).unwrap();
    assert_eq!((outcome.progress.branches, outcome.progress.run), (BRANCHES, BRANCHES - before));
    assert_eq!(outcome.why, EndReason::Branches);
    assert_eq!(outcome.tree, whole.tree);
    assert_eq!(outcome.merged.digest(), whole.merged.digest());
    let end = outcome.merged.end(outcome.why, 0);
    journal.finish(&end).unwrap();
    let (reading, merged) = Reading::open_merged(&run).unwrap();
    assert_eq!((reading.end(), merged.digest()), (Some(&end), whole.merged.digest()));

    let bytes = std::fs::metadata(run.join("branches.bin")).unwrap().len() / BRANCHES;
    assert!(bytes < BRANCH_BYTES_MAX, "a branch takes {bytes} bytes on the disk");
    let points: usize = (0..BRANCHES).map(|n| reading.get(n).unwrap().unwrap().delta.points().count()).sum();
    assert!(points / BRANCHES as usize > 600, "a branch reaches {} points", points / BRANCHES as usize);
}

//! Tests of the database: recorded runs, malicious files, and several processes at once.

use std::fs;
use std::thread;

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::compare::Status;

struct Lab(TempDir);

impl Lab {
    fn new() -> Lab {
        Lab(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("history.sqlite")
    }

    fn open(&self) -> History {
        History::open(&self.file()).unwrap()
    }

    /// Returns the error for an unusable file. Asserts that opening it for reading and opening it for changes fail with
    /// the same error.
    fn error(&self) -> String {
        let error = History::open(&self.file()).unwrap_err().to_string();
        assert_eq!(History::read(&self.file()).unwrap_err().to_string(), error);
        assert!(error.contains("history.sqlite: ") && error.lines().count() == 1, "{error}");
        error
    }
}

fn run(folder: &str, begun_unix_s: u64) -> Run {
    Run {
        folder: format!("/runs/{folder}"),
        world: "/w.toml".to_owned(),
        identity: "i".to_owned(),
        seed: u64::MAX,
        strategy: "novelty".to_owned(),
        engine: "soft".to_owned(),
        exact: true,
        begun_unix_s,
        ended_unix_s: Some(begun_unix_s + 5),
        why: Some("branches".to_owned()),
        budget_branches: Some(7),
        budget_ns: None,
        branches: 7,
        vtime_ns: u64::MAX,
        cpu_ns: 3,
        digest: "d".to_owned(),
        findings: 0,
    }
}

fn finding(id: u32, signature: &str) -> Finding {
    Finding { id, property: "p".to_owned(), signature: signature.to_owned(), text: "t".to_owned() }
}

#[test]
fn runs_are_read_back_the_newest_first() {
    let lab = Lab::new();
    assert!(History::read(&lab.file()).unwrap().is_none());
    let mut history = lab.open();
    let other = Run { world: "/other.toml".to_owned(), ..run("c", 30) };
    for run in [run("b", 20), run("a", 10), other.clone(), run("same", 20)] {
        history.finish(&run, &[]).unwrap();
    }
    drop(history);
    let history = History::read(&lab.file()).unwrap().unwrap();
    let of_world = [run("same", 20), run("b", 20), run("a", 10)];
    assert_eq!(history.runs(Some("/w.toml"), 100).unwrap(), of_world);
    assert_eq!(history.runs(None, 1).unwrap(), [other]);
    assert_eq!(history.runs(Some("/none.toml"), 9).unwrap(), []);
    assert_eq!((history.count(None).unwrap(), history.count(Some("/w.toml")).unwrap()), (4, 3));
    assert_eq!(history.run("/runs/b").unwrap(), Some(run("b", 20)));
    assert_eq!(history.before(&run("same", 20), 9).unwrap(), of_world[1..]);
}

#[test]
fn a_resumed_run_updates_its_record() {
    let lab = Lab::new();
    let mut history = lab.open();
    let start = Run { ended_unix_s: None, why: None, branches: 0, digest: String::new(), ..run("a", 10) };
    history.begin(&start, false).unwrap();
    assert_eq!(history.runs(None, 9).unwrap(), std::slice::from_ref(&start));
    let end = Run { findings: 1, ..run("a", 12) };
    history.finish(&end, &[finding(1, "s")]).unwrap();
    let ended = Run { begun_unix_s: 10, ..end };
    assert_eq!(history.runs(None, 9).unwrap(), std::slice::from_ref(&ended));
    // A process that is killed after it resumed the run loses no results.
    history.begin(&Run { begun_unix_s: 99, budget_branches: Some(8), ..start.clone() }, true).unwrap();
    let resumed = Run { ended_unix_s: None, why: None, budget_branches: Some(8), ..ended };
    assert_eq!(history.runs(None, 9).unwrap(), std::slice::from_ref(&resumed));
    assert_eq!(history.findings(&resumed).unwrap(), [finding(1, "s")]);
    // Another exploration in the same folder replaces the recorded run.
    history.begin(&Run { begun_unix_s: 99, ..start }, false).unwrap();
    let runs = history.runs(None, 9).unwrap();
    assert_eq!((runs.len(), runs[0].begun_unix_s, runs[0].findings), (1, 99, 0));
    assert_eq!(history.findings(&runs[0]).unwrap(), []);
}

#[test]
fn a_run_is_compared_with_the_one_before_that_ended() {
    let lab = Lab::new();
    let mut history = lab.open();
    history.finish(&run("a", 10), &[finding(1, "old"), finding(2, "both")]).unwrap();
    history.begin(&Run { ended_unix_s: None, ..run("killed", 20) }, false).unwrap();
    history.finish(&run("b", 30), &[finding(1, "both"), finding(2, "new")]).unwrap();
    let compared = history.compared(&run("b", 30)).unwrap().unwrap();
    assert_eq!(compared.before, run("a", 10));
    let counts = [Status::New, Status::Ongoing, Status::Gone].map(|status| compared.count(status));
    assert_eq!(counts, [1, 1, 1]);
    assert_eq!(history.compared(&run("a", 10)).unwrap(), None);
    assert!(history.forget("/runs/a").unwrap() && !history.forget("/runs/a").unwrap());
    assert_eq!(history.compared(&run("b", 30)).unwrap(), None);
    assert_eq!(history.findings(&run("a", 10)).unwrap(), [], "its findings are forgotten with it");
}

#[test]
fn bounds_hold() {
    let lab = Lab::new();
    let mut history = lab.open();
    let many: Vec<Finding> = (1..=FINDINGS_MAX as u32 + 9).map(|id| finding(id, &"é".repeat(900))).collect();
    history.finish(&run("a", 10), &many).unwrap();
    let kept = history.findings(&run("a", 10)).unwrap();
    assert_eq!((kept.len(), kept[0].signature.len()), (FINDINGS_MAX, 512));
    let long = Run { folder: "x".repeat(PATH_BYTES_MAX + 1), ..run("a", 10) };
    let error = history.finish(&long, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a path of 4097 bytes is too long for the history of runs, which takes 4096"
    );
    history
        .connection
        .execute_batch(&format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {RUNS_MAX})
             INSERT INTO run ({COLUMNS}) SELECT i, 'w', '', 0, '', '', 1, 20, NULL, NULL, NULL, NULL, 0, 0, 0, '', 0 FROM n"
        ))
        .unwrap();
    history.finish(&run("b", 30), &[]).unwrap();
    assert_eq!(history.count(None).unwrap(), u64::from(RUNS_MAX));
    assert_eq!(history.run("/runs/a").unwrap(), None, "the oldest one was forgotten");
    assert!(history.run("/runs/b").unwrap().is_some());
}

#[test]
fn files_that_are_no_history_are_refused_and_stay() {
    let lab = Lab::new();
    fs::write(lab.file(), "not a database, but long enough to look like one ".repeat(50)).unwrap();
    assert!(lab.error().contains("file is not a database"));
    assert!(fs::read_to_string(lab.file()).unwrap().starts_with("not a database"));
    fs::remove_file(lab.file()).unwrap();
    fs::create_dir(lab.file()).unwrap();
    assert!(lab.error().contains("not a regular file"));
    fs::remove_dir(lab.file()).unwrap();
    let other = |sql: &str| {
        let _ = fs::remove_file(lab.file());
        Connection::open(lab.file()).unwrap().execute_batch(sql).unwrap();
        lab.error()
    };
    assert!(other("CREATE TABLE t (x)").contains("a database with other tables"));
    let altered = |sql: &str| {
        let _ = fs::remove_file(lab.file());
        drop(lab.open());
        Connection::open(lab.file()).unwrap().execute_batch(sql).unwrap();
        lab.error()
    };
    assert!(altered("PRAGMA user_version = 9").contains("format version 9; this Everett has 1"));
    let trigger = "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM finding; END";
    assert!(altered(trigger).contains("other tables"));
    let view = "DROP TABLE finding; CREATE VIEW finding AS SELECT 1";
    assert!(altered(view).contains("other tables"));
    let index = "CREATE INDEX i ON run (abs(seed))";
    assert!(altered(index).contains("other tables"));
}

/// A file with damage at any position gives results or an error of one line, and never a panic.
#[test]
fn damaged_files_end_in_one_line() {
    let lab = Lab::new();
    let mut history = lab.open();
    for number in 0..40 {
        history.finish(&run(&number.to_string(), number), &[finding(1, "s"), finding(2, "t")]).unwrap();
    }
    drop(history);
    let whole = fs::read(lab.file()).unwrap();
    let mut refused = 0;
    for at in (0..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[at..].iter_mut().take(16).for_each(|byte| *byte ^= 0xa5);
        fs::write(lab.file(), &bytes).unwrap();
        let used = History::open(&lab.file()).and_then(|mut history| {
            for run in history.runs(None, RUNS_MAX)? {
                history.compared(&run)?;
            }
            history.finish(&run("new", 99), &[finding(1, "s")])
        });
        if let Err(error) = used {
            refused += 1;
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
        }
    }
    assert!(refused > 10, "only {refused} damaged files were noticed");
    fs::write(lab.file(), &whole[..whole.len() / 2]).unwrap();
    let read = History::open(&lab.file()).and_then(|history| history.runs(None, RUNS_MAX));
    assert!(read.is_err(), "half of a file");
}

#[test]
fn several_writers_wait_for_one_another() {
    const WRITERS: u64 = 4;
    const RUNS: u64 = 25;
    let lab = Lab::new();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let file = lab.file();
            scope.spawn(move || {
                for number in 0..RUNS {
                    // Each iteration opens the file anew, as a process does. One of the first iterations creates the
                    // file.
                    let mut history = History::open(&file).unwrap();
                    let run = run(&format!("{writer}-{number}"), number);
                    history.begin(&run, false).unwrap();
                    history.finish(&run, &[finding(1, "s")]).unwrap();
                }
            });
        }
    });
    assert_eq!(lab.open().count(None).unwrap(), WRITERS * RUNS);
}

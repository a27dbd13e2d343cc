//! `everett runs`: recording, listing, comparing and removing explorations. Each test has its own cache. The run
//! directories are written directly, without machines.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use everett_explorer::run::{EndReason, Header, Journal, Merged, Reading};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::records::{header, hit, record};

struct Lab(TempDir);

impl Lab {
    fn new() -> Lab {
        let lab = Lab(tempfile::tempdir().unwrap());
        fs::write(lab.path("w.toml"), "").unwrap();
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn everett(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
        command.current_dir(self.0.path()).env("EVERETT_CACHE", self.path("cache"));
        command.args(arguments).output().unwrap()
    }

    /// Runs a command that must succeed. Returns its standard output.
    fn prints(&self, arguments: &[&str]) -> String {
        let output = self.everett(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn records(&self, arguments: &[&str]) -> Vec<Value> {
        let lines = self.prints(&[&["--json", "runs"], arguments].concat());
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Runs a command that must fail with one line on standard error. Returns that line.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.everett(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
        error
    }

    fn header(&self, identity: &str) -> Header {
        header(identity, self.path("w.toml").display().to_string())
    }

    /// Writes a run directory that began at `begun_unix_s`. It has a branch with a finding for each signature
    /// (identity of a finding across runs).
    fn explored(&self, name: &str, identity: &str, begun_unix_s: u64, signatures: &[&str]) {
        let (folder, header) = (self.path(name), self.header(identity));
        let mut journal = Journal::create(&folder, &header).unwrap();
        for (choice, signature) in (0..).zip(signatures) {
            journal
                .append(record(choice, vec![hit("p", signature, format!("it is \u{1b}[31m{signature}"))]))
                .unwrap();
        }
        let merged: Merged = Reading::open(&folder).unwrap().merged(u64::MAX).unwrap();
        journal.finish(&merged.end(EndReason::Branches, 12)).unwrap();
        for (file, unix_s) in [("run.json", begun_unix_s), ("end.json", begun_unix_s + 5)] {
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(unix_s);
            fs::File::options().write(true).open(folder.join(file)).unwrap().set_modified(time).unwrap();
        }
    }

    /// Writes and records three runs of a world file, which changed before the third run.
    fn three(&self) {
        self.explored("a", "i", 1_000, &["old", "both"]);
        self.explored("b", "i", 2_000, &["both", "new"]);
        self.explored("c", "j", 3_000, &[]);
        // The order of recording does not matter.
        self.prints(&["runs", "add", "c", "a", "b"]);
    }
}

/// Returns the names of the run directories in these records of `everett runs`.
fn folders(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["folder"].as_str().unwrap().rsplit('/').next().unwrap()).collect()
}

#[test]
fn runs_are_listed_and_compared() {
    let lab = Lab::new();
    assert_eq!(lab.prints(&["runs"]), "no exploration is recorded\n");
    assert_eq!(lab.prints(&["runs", "w.toml"]), "no exploration of w.toml is recorded\n");
    lab.three();
    let records = lab.records(&["w.toml"]);
    assert_eq!(folders(&records), ["c", "b", "a"]);
    let [c, b, a] = &records[..] else { panic!("three runs") };
    let found = |record: &Value| -> Vec<(Value, Value)> {
        let found = record["found"].as_array().unwrap().iter();
        found.map(|found| (found["status"].clone(), found["signature"].clone())).collect()
    };
    assert_eq!(found(a), [(Value::Null, json!("old")), (Value::Null, json!("both"))]);
    let of_b = [("ongoing", "both"), ("new", "new"), ("gone", "old")];
    assert_eq!(found(b), of_b.map(|(status, signature)| (json!(status), json!(signature))));
    assert_eq!((&b["changed"], &c["changed"], &a["changed"]), (&json!(false), &json!(true), &Value::Null));
    assert_eq!(
        (&b["begun_unix_s"], &b["ended_unix_s"], &b["why"]),
        (&json!(2_000), &json!(2_005), &json!("branches"))
    );
    assert_eq!((&b["branches"], &b["cpu_ns"]), (&json!(2), &json!(120_000_000_000u64)));
    let text = lab.prints(&["runs"]);
    assert!(text.starts_with(&format!("{}\nbegun", lab.path("w.toml").display())), "{text}");
    assert!(text.contains("2 min  2: 1 new, 1 ongoing, 1 gone"), "{text}");
    assert!(text.contains("none: 2 gone, world changed"), "{text}");
    // Adding a run again changes nothing.
    lab.prints(&["runs", "add", "b"]);
    assert_eq!(lab.records(&[]), records);
    fs::rename(lab.path("b"), lab.path("moved")).unwrap();
    let text = lab.prints(&["runs"]);
    let b = lab.path("b").display().to_string();
    assert!(text.contains(&format!("{b}  (gone)")), "{text}");
    assert_eq!(text.matches("(gone)").count(), 1);
}

#[test]
fn a_report_takes_older_runs_from_the_history() {
    let lab = Lab::new();
    lab.three();
    let older = |run: &str| -> Vec<String> {
        let output = lab.everett(&["report", run, "--against", "history", "--data"]);
        let data: Value = serde_json::from_slice(&output.stdout).unwrap();
        let older = data["older"].as_array().unwrap().iter();
        older.map(|older| older["run"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
    };
    assert_eq!(older("c"), ["a", "b"]);
    assert_eq!(older("b"), ["a"]);
    assert_eq!(older("a"), [] as [&str; 0]);
    // A run that is not recorded counts as newer than all recorded runs.
    lab.explored("d", "i", 1, &[]);
    assert_eq!(older("d"), ["a", "b", "c"]);
    // A folder that now holds another exploration is not the recorded run.
    fs::remove_dir_all(lab.path("b")).unwrap();
    lab.explored("b", "other", 9_000, &[]);
    assert_eq!(older("c"), ["a"]);
}

#[test]
fn prune_removes_runs_and_nothing_else() {
    let lab = Lab::new();
    lab.three();
    fs::write(lab.path("a/notes.txt"), "mine").unwrap();
    fs::write(lab.path("a/report.html"), "").unwrap();
    let output = lab.everett(&["runs", "prune"]);
    assert_eq!(output.status.code(), Some(2), "a bound is needed");
    let removed = |arguments: &[&str]| {
        let records = lab.records(&[&["prune"], arguments].concat());
        assert!(records.iter().all(|record| record["kind"] == "run_removed"), "{records:?}");
        folders(&records).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(removed(&["--keep", "1", "--dry-run"]), ["b", "a"]);
    assert_eq!(removed(&["--gone"]), [] as [&str; 0]);
    assert_eq!(lab.records(&[]).len(), 3);
    let text = lab.prints(&["runs", "prune", "--keep", "1"]);
    assert!(
        text.contains("a  (its folder stays, because it has other files)")
            && text.contains("2 runs removed, 1 left"),
        "{text}"
    );
    let left: Vec<_> = fs::read_dir(lab.path("a")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["notes.txt"]);
    assert!(!lab.path("b").exists() && lab.path("c/run.json").exists());
    assert_eq!(folders(&lab.records(&[])), ["c"]);
    fs::remove_dir_all(lab.path("c")).unwrap();
    assert_eq!(removed(&["--gone"]), ["c"]);
}

#[test]
fn prune_says_what_stays_in_a_folder_that_is_not_the_run() {
    let lab = Lab::new();
    lab.three();
    fs::remove_dir_all(lab.path("b")).unwrap();
    lab.explored("b", "other", 9_000, &["x"]);
    fs::remove_file(lab.path("a/run.json")).unwrap();
    let text = lab.prints(&["runs", "prune", "--keep", "1"]);
    assert!(text.contains("b  (its folder stays, because it holds another exploration)"), "{text}");
    assert!(text.contains("a  (its folder stays, because it holds no run any more)"), "{text}");
}

/// Pruning keeps a run directory that a process is writing, and a folder that no longer holds the recorded run.
#[test]
fn prune_keeps_what_is_in_use_or_not_the_run() {
    let lab = Lab::new();
    lab.three();
    let journal = Journal::resume(&lab.path("a"), &lab.header("i")).unwrap();
    fs::remove_dir_all(lab.path("b")).unwrap();
    lab.explored("b", "other", 9_000, &["x"]);
    fs::rename(lab.path("c"), lab.path("real")).unwrap();
    std::os::unix::fs::symlink(lab.path("real"), lab.path("c")).unwrap();
    let records = lab.records(&["prune", "--keep", "0"]);
    let kinds: Vec<&str> = records.iter().map(|record| record["kind"].as_str().unwrap()).collect();
    assert_eq!(
        (folders(&records), kinds),
        (vec!["c", "b", "a"], vec!["run_kept", "run_removed", "run_kept"])
    );
    assert!(records[2]["why"].as_str().unwrap().contains("in use"), "{}", records[2]);
    for file in ["a/run.json", "b/run.json", "b/branches.bin", "real/run.json"] {
        assert!(lab.path(file).exists(), "{file}");
    }
    assert_eq!(folders(&lab.records(&[])), ["c", "a"]);
    drop(journal);
    assert_eq!(folders(&lab.records(&["prune", "--keep", "0"])), ["c", "a"]);
    assert!(!lab.path("a").exists());
}

#[test]
fn a_damaged_history_is_named() {
    let lab = Lab::new();
    lab.explored("a", "i", 1_000, &[]);
    fs::create_dir_all(lab.path("cache")).unwrap();
    fs::write(lab.path("cache/history.sqlite"), "no database ".repeat(500)).unwrap();
    for arguments in [
        &["runs"][..],
        &["runs", "add", "a"],
        &["runs", "prune", "--gone"],
        &["report", "a", "--against", "history"],
    ] {
        let error = lab.refused(arguments);
        assert!(error.contains("cache/history.sqlite: no usable history of runs"), "{error}");
        assert!(error.contains("remove it to begin a new one"), "{error}");
    }
    assert!(lab.refused(&["runs", "add", "none"]).contains("none has no run"));
}

//! Tests that create, end and resume run directories.

use everett_streams::Seed;

use super::*;

#[test]
fn a_run_is_written_and_read() {
    let folder = tempdir().unwrap();
    let run = folder.path().join("runs/1");
    let mut records = row(5);
    records.rotate_left(2);
    let mut journal = Journal::create(&run, &header()).unwrap();
    assert!(journal.is_empty());
    append(&mut journal, &records);
    assert_eq!(journal.len(), 5);
    let reading = Reading::open(&run).unwrap();
    assert_eq!((reading.header(), reading.end(), reading.len()), (&header(), None, 5));
    assert_eq!(all(&run), row(5));
    assert_eq!(reading.get(3).unwrap().as_ref(), Some(&records[1]));
    assert_eq!(reading.get(5).unwrap(), None);
    let end = reading.merged(u64::MAX).unwrap().end(EndReason::Branches, 12);
    journal.finish(&end).unwrap();
    assert_eq!(Reading::open(&run).unwrap().end(), Some(&end));
    // Resuming the run removes `end.json`.
    let journal = resumed(&run);
    assert_eq!(Reading::open(&run).unwrap().end(), None);
    journal.finish(&end).unwrap();
    assert_eq!(Reading::open(&run).unwrap().end(), Some(&end));
}

#[test]
fn folders_that_can_or_cannot_hold_a_new_run() {
    let folder = tempdir().unwrap();
    let run = folder.path();
    let error = |result: Result<Journal, RunError>| message(&result.unwrap_err(), run);
    assert_eq!(error(Journal::resume(run, &header())), "RUN has no run: there is no run.json in it");
    assert_eq!(message(&Reading::open(run).unwrap_err(), run), "RUN has no run: there is no run.json in it");
    assert_eq!(fs::read_dir(run).unwrap().count(), 0, "the failed attempts leave no file");
    // A writer was killed before the header was complete.
    fs::write(run.join("lock"), "").unwrap();
    fs::write(branches(run), "").unwrap();
    fs::write(run.join(".temporary-run.json"), "{").unwrap();
    let journal = Journal::create(run, &header()).unwrap();
    assert_eq!(error(Journal::create(run, &header())), "RUN is in use: another process explores there");
    drop(journal);
    assert_eq!(
        error(Journal::create(run, &header())),
        "RUN has a run already: resume it, or name another folder"
    );
    let mut names: Vec<_> = fs::read_dir(run).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["branches.bin", "findings", "lock", "run.json"]);
    fs::remove_file(run.join("run.json")).unwrap();
    fs::write(branches(run), "x").unwrap();
    let orphans = "RUN has records, but no run.json: name another folder, or remove this one to start again";
    assert_eq!(error(Journal::create(run, &header())), orphans);
}

#[test]
fn another_exploration_is_refused_and_untouched() {
    let run = written(&row(2));
    let journal = resumed(run.path());
    journal.finish(&Merged::default().end(EndReason::Stopped, 0)).unwrap();
    let mut torn = fs::read(branches(run.path())).unwrap();
    torn.pop();
    fs::write(branches(run.path()), &torn).unwrap();
    let other = Header { seed: Seed::new(8), ..header() };
    let error = Journal::resume(run.path(), &other).unwrap_err();
    assert_eq!(
        message(&error, run.path()),
        "RUN belongs to another exploration: name another folder, or remove this one to start again: \
         seed differs: 7 here, 8 there"
    );
    assert_eq!(fs::read(branches(run.path())).unwrap(), torn);
    assert!(Reading::open(run.path()).unwrap().end().is_some());
    fs::remove_file(run.path().join(names::END)).unwrap();
    assert_eq!(Journal::resume(run.path(), &header()).unwrap().len(), 1);
}

#[test]
fn a_choice_has_one_result() {
    let run = written(&row(2));
    let before = fs::read(branches(run.path())).unwrap();
    let mut journal = resumed(run.path());
    // Results count as equal if they differ only in costs on the host and in the length of the log.
    journal.append(Record { cpu_ns: 9, executed: 9, log_bytes: 9, ..row(1)[0].clone() }).unwrap();
    for other in [
        Record { trail: "00fe".to_owned(), ..row(1)[0].clone() },
        Record { hits: vec![hit("p", "s", 1)], ..row(1)[0].clone() },
        Record { delta: Delta::default(), ..row(1)[0].clone() },
    ] {
        let error = journal.append(other).unwrap_err();
        assert_eq!(message(&error, run.path()), "the result of choice 0 differs from the recorded one");
    }
    assert_eq!(fs::read(branches(run.path())).unwrap(), before);
    // A resumed search must make the recorded choices again. Any other choice is an error.
    let choice = |number, from, path: &str| Choice { number, from, path: path.parse().unwrap() };
    let of = |choice| journal.recorded(&choice);
    assert_eq!(
        of(choice(1, ForkPoint::Root, "1000.2")).unwrap(),
        Some(MergeInput::new(row(2)[1].clone(), journal.dictionary()).unwrap())
    );
    assert_eq!(of(choice(2, ForkPoint::Root, "1000.3")).unwrap(), None);
    let error = of(choice(1, ForkPoint::Root, "1000.3")).unwrap_err();
    assert_eq!(message(&error, run.path()), "choice 1 is 1000.3 now, but 1000.2 was recorded");
    assert!(of(choice(1, ForkPoint::After(0), "1000.2")).is_err());
}

#[test]
fn evidence_is_stored_completely_or_not_at_all() {
    let run = written(&[]);
    // A writer was killed while it stored evidence.
    let left = run.path().join("findings/.temporary-7");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("log.txt"), "ha").unwrap();
    let mut journal = resumed(run.path());
    assert!(!left.exists());
    journal.keep_evidence(7, &[("log.txt", b"half"), ("wire.pcapng", b"")]).unwrap();
    journal.keep_evidence(12, &[]).unwrap();
    // Stored evidence does not change.
    journal.keep_evidence(7, &[("log.txt", b"other")]).unwrap();
    let reading = Reading::open(run.path()).unwrap();
    let kept = || (0..20).filter(|&id| reading.evidence_of(id).is_some()).collect::<Vec<u32>>();
    assert_eq!(kept(), [7, 12]);
    assert_eq!(fs::read(reading.evidence_of(7).unwrap().join("log.txt")).unwrap(), b"half");
    for name in ["", ".x", "../x", "a/b", "Log", &"x".repeat(limits::FILE_NAME_BYTES_MAX + 1)] {
        let error = journal.keep_evidence(8, &[("fine", b""), (name, b"")]).unwrap_err();
        assert!(matches!(error, RunError::FileName(_)), "{name}");
    }
    assert!(matches!(journal.keep_evidence(8, &[("a", b""), ("a", b"")]), Err(RunError::Files(8))));
    let names: Vec<String> = (0..=limits::FILES_MAX).map(|i| i.to_string()).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    assert!(matches!(journal.keep_evidence(8, &many), Err(RunError::Files(8))));
    assert_eq!(kept(), [7, 12]);
}

//! Tests of the comparison with older runs.

use super::sample::{Sample, header, hit, record, records};
use crate::data::{Data, Status};

/// Returns a run whose subtrees take a minute each. A subtree is a branch that starts at the root moment, with all
/// branches that extend it. The subtrees in `found` have the finding.
fn run(subtrees: u64, found: &[u64]) -> Sample {
    let branch = |choice: u64| {
        let mut record = record(choice, None, &format!("{}.{}", super::sample::ROOT_NS, choice + 1));
        if found.contains(&choice) {
            record.hits = vec![hit("kernel oops", "x")];
        }
        record
    };
    let records: Vec<_> = (0..subtrees).map(branch).collect();
    Sample::new(&header("x"), &records, "x")
}

fn against(older: &[&Sample], now: &Sample) -> Data {
    now.data(older)
}

#[test]
fn what_became_of_a_finding() {
    let (clean, long, seen) = (run(10, &[]), run(400, &[]), run(10, &[3]));
    let status = |older: &[&Sample], now: &Sample| {
        let data = against(older, now);
        let property = data.properties.iter().find(|property| property.name == "kernel oops").unwrap();
        let finding = data.findings.first().and_then(|finding| finding.status);
        let gone = data.gone.first().map(|gone| gone.status);
        assert!(finding.is_none() || gone.is_none());
        assert_eq!(property.status, finding.or(gone));
        property.status
    };
    assert_eq!(status(&[], &seen), None);
    assert_eq!(status(&[&clean], &clean), None);
    assert_eq!(status(&[&clean], &seen), Some(Status::New));
    assert_eq!(status(&[&seen], &seen), Some(Status::Ongoing));
    assert_eq!(status(&[&clean, &seen, &clean], &seen), Some(Status::Rare));
    // A hit is an occurrence of the finding. After one hit in T = 10 minutes and then t minutes without a hit, the
    // probability that the bug is still there is T / (T + t). The bug counts as gone when this probability is at most
    // 0.06, i.e. after 157 minutes. Ten minutes are not enough, 400 are.
    assert_eq!(status(&[&seen], &clean), Some(Status::Rare));
    assert_eq!(status(&[&seen], &long), Some(Status::Resolved));
    assert_eq!(status(&[&seen, &long], &clean), Some(Status::Resolved));
}

#[test]
fn older_runs_are_named_and_counted() {
    let (seen, clean) = (run(10, &[3]), run(10, &[]));
    let data = against(&[&seen, &clean], &clean);
    assert_eq!(
        data.older.iter().map(|run| (run.branches, run.findings, run.same)).collect::<Vec<_>>(),
        [(10, 1, true), (10, 0, true)]
    );
    let [gone] = data.gone.as_slice() else { panic!("{:?}", data.gone) };
    assert_eq!((gone.run.as_str(), gone.id, gone.cpu.hits), ("older 0 x", 1, 1));
    // The probabilities T / (T + t) that the bug is still there. T is 10 minutes: a minute for each of the nine
    // subtrees without the finding, and a minute for the subtree that has the finding at its end.
    assert_eq!(gone.cpu.survival, [Some(1.0), Some(0.5), Some(10.0 / 30.0)]);
    assert_eq!(
        data.summary.verdict,
        "Nothing was found; 1 not seen again, but perhaps still there; 2 properties were never reached."
    );
    let other = Sample::new(
        &everett_explorer::run::Header { identity: "other".to_owned(), ..header("x") },
        &records("x"),
        "x",
    );
    let data = against(&[&other], &clean);
    assert!(!data.older[0].same && data.missing.iter().all(|line| !line.contains("history")));
    let elsewhere = Sample::new(&header("another world"), &records("x"), "x");
    let said = "a comparison within one world: the older run older 0 x explored lock another world";
    assert!(against(&[&elsewhere], &clean).missing.contains(&said.to_owned()));
}

//! Tests of the short summaries of branches that a reader of a run directory collects.

use std::collections::BTreeSet;

use super::super::{KINDS_MAX, branches};
use super::*;
use crate::coverage::Reached;

/// Replaces the coverage points of a record (a branch's stored result) by one point for each of these kinds of faults.
/// A point also has a phase, whose name contains the branch's number. Points of different records therefore differ.
fn with_faults(mut record: Record, kinds: &[&str]) -> Record {
    let point = |kind: &&str| {
        let point = Point::Fault { fault: (*kind).to_owned(), phase: format!("p{}", record.choice) };
        (point.id(), Reached { point, vtime_ns: 1 })
    };
    record.delta = kinds.iter().map(point).collect();
    record
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Results arrive in any order. The summaries are in the order of the branches' numbers and match the records.
    #[test]
    fn figures_fit_the_records(branches in 0..80u64, dice: u64) {
        let folder = written(&[]);
        let mut journal = resumed(folder.path());
        let (_, merged) = explore(branches, 6, dice, Some(&mut journal), usize::MAX);
        drop(journal);
        let (reading, read, figures) = Reading::open_with_branches(folder.path()).unwrap();
        prop_assert_eq!(read.digest(), merged.digest());
        prop_assert_eq!(figures.all.len() as u64, branches);
        let mut new_points = 0;
        for (choice, branch) in (0..).zip(&figures.all) {
            let record = reading.get(choice).unwrap().unwrap();
            let fork = record.path.forks().last().unwrap();
            prop_assert_eq!((branch.from, branch.child, branch.begin_ns), (record.from, fork.child, fork.vtime_ns));
            prop_assert_eq!((branch.end_ns, branch.instructions), (record.end_ns, record.instructions));
            prop_assert_eq!((branch.open, branch.broken), (record.open_ns.is_some(), record.broken.is_some()));
            let ids: Vec<u32> = record.hits.iter().map(|hit| {
                let same = |found: &&Finding| found.hit.property == hit.property && found.hit.signature == hit.signature;
                merged.findings().iter().find(same).unwrap().id
            }).collect();
            prop_assert_eq!(&branch.findings, &ids);
            new_points += branch.new_points;
        }
        prop_assert_eq!(new_points, merged.coverage().len() as u64);
    }
}

#[test]
fn kinds_of_faults_are_bits() {
    let kinds: Vec<String> = (0..KINDS_MAX + 3).map(|n| format!("kind{n}")).collect();
    let many: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let mut records = row(4);
    records[0] = with_faults(records[0].clone(), &["loss"]);
    records[1] = with_faults(records[1].clone(), &["clog", "loss"]);
    records[3] = with_faults(records[3].clone(), &many);
    let folder = written(&records);
    let (.., figures) = Reading::open_with_branches(folder.path()).unwrap();
    let names = |branch: &branches::Branch| -> BTreeSet<String> {
        (0..KINDS_MAX)
            .filter(|bit| branch.kinds >> bit & 1 == 1)
            .map(|bit| figures.kinds.names()[bit].clone())
            .collect()
    };
    assert_eq!(names(&figures.all[0]), ["loss".to_owned()].into());
    assert_eq!(names(&figures.all[1]), ["clog".to_owned(), "loss".to_owned()].into());
    assert_eq!(names(&figures.all[2]), BTreeSet::new());
    // The summaries have one bit for each kind of fault, at most `KINDS_MAX`. The first two records use two bits. The
    // summary of the last record omits the kinds for which no bit is left.
    assert_eq!((names(&figures.all[3]).len(), figures.kinds.names().len()), (KINDS_MAX - 2, KINDS_MAX));
}

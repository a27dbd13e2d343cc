//! Tests of merged results: the results of a few branches are compared with values that were computed by hand.

use crate::coverage::statistics::Findability;

use super::*;
use crate::search::Standing;

/// Returns the records (recorded results) of four branches, numbered 0 to 3. They are in two subtrees of the root
/// moment: branches 0, 1 and 3 are in the first subtree, and branch 2 is in the second.
fn four() -> Vec<Record> {
    let mut records = vec![
        record(0, None, "1000.1"),
        record(1, Some(0), "1000.1/2000.1"),
        record(2, None, "1000.2"),
        record(3, Some(1), "1000.1/2000.1/3000.1"),
    ];
    records[1].hits = vec![hit("p", "x", 2_500), hit("q", "z", 2_600)];
    records[3].hits = vec![hit("p", "y", 3_500), hit("p", "x", 3_600)];
    records[3].sometimes = vec!["often".to_owned()];
    records[1].sometimes = vec!["often".to_owned(), "once".to_owned()];
    records
}

fn merged(records: &[Record]) -> Merged {
    let mut merged = Merged::default();
    for record in records {
        merged.merge(record.clone()).unwrap();
    }
    merged
}

#[test]
fn findings_and_their_costs() {
    let merged = merged(&four());
    let cost = |branches: u64| Cost { cpu_ns: 100 * branches, instructions: 10 * branches };
    let found: Vec<_> = merged
        .findings()
        .iter()
        .map(|f| (f.id, f.hit.signature.as_str(), f.first, f.cost, f.tally.branches, f.tally.subtrees.len()))
        .collect();
    assert_eq!(found, [(1, "x", 1, cost(2), 2, 1), (2, "z", 1, cost(2), 1, 1), (3, "y", 3, cost(4), 1, 1)]);
    assert_eq!(merged.findings()[0].hit.vtime_ns, 2_500);
    assert_eq!(merged.findings()[0].tally.subtrees[&0], InSubtree { branches: 2, until: cost(2) });
    assert_eq!(merged.subtrees().values().copied().collect::<Vec<Cost>>(), [cost(3), cost(1)]);
    // The first subtree contributes its cost up to the first branch with the finding. No branch of the second subtree
    // has the finding, so the second subtree contributes its whole cost.
    let cpu = |tally| merged.findability(tally, Cost::cpu_ns);
    assert_eq!(cpu(&merged.findings()[0].tally), Findability { time: 300, hits: 1 });
    assert_eq!(cpu(&merged.findings()[2].tally), Findability { time: 400, hits: 1 });
    assert_eq!(merged.properties().keys().collect::<Vec<_>>(), ["p", "q"]);
    assert_eq!(
        (merged.properties()["p"].branches, cpu(&merged.properties()["p"])),
        (2, Findability { time: 300, hits: 1 })
    );
    let instructions = merged.findability(&merged.findings()[0].tally, Cost::instructions);
    assert_eq!(instructions, Findability { time: 30, hits: 1 });
    assert_eq!(merged.sometimes()["often"], Seen { first: 1, branches: 2 });
    assert_eq!(merged.sometimes()["once"], Seen { first: 1, branches: 1 });
    let totals = merged.totals();
    assert_eq!((totals.cost, totals.vtime_ns, totals.faults), (cost(4), 4_000_000_000, 4));
}

/// A timeline's number of messages is the sum over the consecutive branches on its path. Branches that start at the
/// same moment are on different timelines, so their numbers of messages are not added.
#[test]
fn messages_are_counted_along_a_timeline() {
    assert_eq!(Merged::default().messages_most(), 0);
    let mut records = four();
    records.push(record(4, Some(1), "1000.1/2000.1/3000.2"));
    for (record, messages) in records.iter_mut().zip([5, 7, 30, 11, 2]) {
        record.messages = messages;
    }
    assert_eq!([1, 2, 3, 4, 5].map(|n| merged(&records[..n]).messages_most()), [5, 12, 30, 30, 30]);
    records[4].messages = 40;
    (records[4].open_ns, records[3].broken) = (None, Some("no memory".to_owned()));
    records[3].open_ns = None;
    let merged = merged(&records);
    assert_eq!((merged.messages_most(), merged.totals().whole), (52, 1));
}

#[test]
fn commands_are_counted_over_all_branches() {
    let mut records = four();
    records[0].commands =
        tally(&[("anytime_a", [2, 0, 1]), ("first_b", [1, 0, 0]), ("finally_c", [0, 0, 0])]);
    records[1].commands = tally(&[("anytime_a", [1, 0, 2]), ("first_b", [0, 1, 0])]);
    records[2].commands = tally(&[("first_b", [1, 1, 0])]);
    let counts = |started, succeeded, failed| Counts { started, succeeded, failed };
    assert_eq!(
        merged(&records).commands().all().collect::<Vec<_>>(),
        [
            ("anytime_a", counts(3, 0, 3), None),
            ("finally_c", counts(0, 0, 0), None),
            ("first_b", counts(2, 2, 0), Some(Seen { first: 1, branches: 2 })),
        ]
    );
    // Records come from files, which are untrusted. The merged result therefore has at most as many commands as a test
    // template can have.
    let most = crate::composer::limits::COMMANDS_MAX;
    let names: Vec<String> = (0..2 * most).map(|i| format!("anytime_{i:03}")).collect();
    for (record, names) in records.iter_mut().zip(names.chunks(most)) {
        let succeeded: Vec<_> = names.iter().map(|name| (name.as_str(), [1, 1, 0])).collect();
        record.commands = tally(&succeeded);
    }
    assert_eq!(merged(&records[..2]).commands().all().filter(|(.., seen)| seen.is_some()).count(), most);
}

fn take(merged: &mut Merged, choice: u64, record: Record) -> Standing {
    let input = MergeInput::new(record, merged.coverage().dictionary()).unwrap();
    merged.take(choice, input)
}

#[test]
fn standings_and_the_unseen_share() {
    let mut merged = Merged::default();
    assert_eq!(merged.unseen_ppm(), 1_000_000);
    let mut four = four();
    four[2].broken = Some("no memory".to_owned());
    let standings: Vec<_> =
        (0..).zip(four).map(|(choice, record)| take(&mut merged, choice, record)).collect();
    // The branches reached the states s0, s1, s2 and s0.
    assert_eq!(standings.iter().map(|standing| standing.reward).collect::<Vec<u64>>(), [1, 1, 1, 0]);
    assert_eq!(standings[0].open_ns, Some(1_000_001_000));
    assert_eq!(standings[2].open_ns, None, "a broken branch cannot be extended");
    assert_eq!(standings[3].instructions, 10);
    // Each of the four branches reached one state. Only one branch reached s1, and only one reached s2. The Good-Turing
    // estimate of the share of unseen states is therefore 2 / 4.
    assert_eq!((merged.unseen_ppm(), merged.totals().broken), (500_000, 1));
}

#[test]
fn only_the_next_choice_is_merged() {
    let mut merged = merged(&four()[..2]);
    let before = merged.digest();
    let wrong = |merged: &mut Merged, record| merged.merge(record).unwrap_err().to_string();
    assert_eq!(wrong(&mut merged, four()[3].clone()), "got the result of choice 3, but choice 2 is next");
    let orphan = Record { from: Some(2), ..record(2, None, "1000.2") };
    assert_eq!(wrong(&mut merged, orphan), "choice 2 extends choice 2, which is not an earlier one");
    assert_eq!((merged.digest(), merged.stray()), (before, None));
    let standing = take(&mut merged, 2, four()[3].clone());
    assert_eq!((standing.open_ns, standing.reward), (None, 0));
    assert_eq!((merged.digest(), merged.stray()), (before, Some(Stray::Order { choice: 3, next: 2 })));
}

/// The digest does not depend on a record's costs on the host, its log length or the evidence of its findings. It
/// depends on every other part of the record that this test changes.
#[test]
fn digests_depend_on_exact_parts_only() {
    let base = four();
    let with = |change: fn(&mut Record)| {
        let mut records = base.clone();
        change(&mut records[3]);
        merged(&records)
    };
    let same: [fn(&mut Record); 4] = [
        |record| record.cpu_ns += 1,
        |record| record.executed += 1,
        |record| record.log_bytes += 1,
        |record| record.hits[0].evidence = Evidence::default(),
    ];
    let whole = merged(&base);
    for change in same {
        assert_eq!(with(change).digest(), whole.digest());
    }
    let other: [fn(&mut Record); 20] = [
        |record| record.from = Some(0),
        |record| record.path = "1000.1/2000.1/3000.2".parse().unwrap(),
        |record| record.open_ns = None,
        |record| record.end_ns += 1,
        |record| record.instructions += 1,
        |record| record.trail.push('0'),
        |record| record.marks.push((9, "a".to_owned())),
        |record| record.checked = true,
        |record| record.faults += 1,
        |record| record.losses += 1,
        |record| record.messages += 1,
        |record| record.delta = Delta::default(),
        |record| record.hits[0].text.push('x'),
        |record| record.hits[1].vtime_ns += 1,
        |record| drop(record.hits.pop()),
        |record| record.sometimes.clear(),
        |record| record.commands = tally(&[("first_a", [0, 0, 0])]),
        |record| record.commands = tally(&[("first_a", [0, 1, 0])]),
        |record| record.history = Some(HistoryCount::default()),
        |record| record.broken = Some(String::new()),
    ];
    for (i, change) in (0..).zip(other) {
        let changed = with(change);
        assert_ne!((i, changed.digest()), (i, whole.digest()));
        assert_ne!((i, changed.digest_at(4)), (i, whole.digest_at(4)));
        assert_eq!((i, changed.digest_at(3)), (i, whole.digest_at(3)));
    }
    // `digest_at(n)` does not depend on the records after the first n.
    assert_eq!(merged(&[]).digest_at(0), whole.digest_at(0));
    assert_eq!(merged(&base[..2]).digest_at(2), whole.digest_at(2));
}

#[test]
fn findings_are_bounded_and_counted() {
    let mut merged = Merged::default();
    let each = limits::HITS_MAX as u64;
    let branches = limits::FINDINGS_MAX as u64 / each + 2;
    for mut record in row(branches) {
        let choice = record.choice;
        record.hits = (0..each).map(|i| hit("p", &(choice * each + i).to_string(), 1)).collect();
        record.sometimes = (0..3).map(|i| format!("{choice} {i}")).collect();
        merged.merge(record).unwrap();
    }
    assert_eq!((merged.findings().len(), merged.findings_overflow()), (limits::FINDINGS_MAX, 2 * each));
    assert_eq!(merged.totals().hits_full, branches);
    // The list of findings is full, but a branch with a known finding is still counted.
    let mut again = record(branches, None, &format!("1000.{}", branches + 1));
    again.hits = vec![hit("p", "0", 1)];
    merged.merge(again).unwrap();
    assert_eq!((merged.findings()[0].tally.branches, merged.findings_overflow()), (2, 2 * each));
    assert_eq!((merged.sometimes().len() as u64, merged.sometimes_overflow()), (3 * branches, 0));
}

//! Tests of gaps in coverage: faults, orders of events and values that seem reachable but never occurred.

use super::*;

fn gaps(branches: &[Vec<Observed>], enabled: &[&str]) -> Gaps {
    let abstraction = Abstraction::new(&raft(), world(2, &[])).unwrap();
    let mut coverage = Coverage::default();
    for (choice, events) in (0..).zip(branches) {
        coverage.merge(choice, &run(&abstraction, events).0).unwrap();
    }
    Gaps::of(&coverage, &abstraction, &enabled.iter().map(|kind| (*kind).to_owned()).collect())
}

#[test]
fn fault_gaps_are_sorted_by_how_often_their_phase_was_seen() {
    let leads = vec![line(1, 0, "raft", "became leader")];
    let mut hit = leads.clone();
    hit.push(fault(2, "loss", &[0], true));
    hit.push(line(3, 0, "raft", "became follower of n2"));
    let found = gaps(&[leads, hit], &["loss", "clog"]).faults;
    let cells: Vec<(&str, &str, u64)> =
        found.first.iter().map(|gap| (gap.fault.as_str(), gap.phase.as_str(), gap.seen)).collect();
    let expected = [
        ("clog", "up", 2),
        ("loss", "up", 2),
        ("clog", "up role=leader", 2),
        // In the phase "up role=leader", the fault `loss` is no gap, because it began there in the second branch.
        ("clog", "up leader=other role=follower", 1),
        ("loss", "up leader=other role=follower", 1),
    ];
    assert_eq!((cells, found.count), (expected.to_vec(), 5));
}

#[test]
fn orders_that_were_seen_one_way() {
    let two = |a: &str, b: &str| vec![line(1, 0, a, "x"), line(2, 0, b, "x")];
    let found =
        gaps(&[two("a", "b"), two("c", "d"), two("c", "d"), two("e", "f"), two("f", "e")], &[]).orders;
    let orders: Vec<(&str, &str, bool, u64)> = found
        .first
        .iter()
        .map(|gap| (gap.first.as_str(), gap.then.as_str(), gap.across, gap.reversed))
        .collect();
    assert_eq!(orders, [("d: x", "c: x", false, 2), ("b: x", "a: x", false, 1)]);
}

#[test]
fn declared_values_that_were_not_seen() {
    let values = |branches: &[Vec<Observed>]| gaps(branches, &[]).values.first;
    let gap = |value: &str| ValueGap { rule: "leader".into(), variable: "role".into(), value: value.into() };
    assert_eq!(values(&[]), [gap("candidate"), gap("leader")]);
    assert_eq!(values(&[vec![line(1, 0, "raft", "became leader")]]), [gap("candidate")]);
}

#[test]
fn lists_of_gaps_are_bounded_and_counted() {
    let abstraction = Abstraction::new(&raft(), world(1, &[])).unwrap();
    let mut coverage = Coverage::default();
    let mut delta = Delta::default();
    let many = limits::GAPS_MAX + 7;
    (0..many).for_each(|i| delta.reach(Point::Phase { phase: format!("{i:06}") }, 1));
    coverage.merge(0, &delta).unwrap();
    let gaps = Gaps::of(&coverage, &abstraction, &["loss".to_owned()].into());
    assert_eq!((gaps.faults.first.len(), gaps.faults.count), (limits::GAPS_MAX, many as u64));
    assert_eq!(gaps.faults.first[0].phase, "000000");
}

//! Tests that a timeline reaches the same coverage points whether it is observed in one piece or in two.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// An exploration observes a timeline in pieces, one for each branch, and relies on this property. Like an
    /// exploration, the test stores the observer's state after the first piece and reads it back.
    #[test]
    fn a_cut_timeline_reaches_the_same_points(events in events(4, 80), cut in 0usize..80, declared: bool) {
        let config = if declared { raft() } else { config(json!({ "last": 2, "vocabulary": 3 })) };
        let abstraction = Abstraction::new(&config, world(4, &[&["n1", "n2", "n3"]])).unwrap();
        let (whole, end) = run(&abstraction, &events);
        let (head, tail) = events.split_at(cut.min(events.len()));
        let (first, middle) = run(&abstraction, head);
        let stored = serde_json::to_string(&middle).unwrap();
        let restored: ObserverState = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(&restored, &middle);
        let (second, last) = go_on(&abstraction, restored, tail);
        prop_assert_eq!(last, end);
        prop_assert_eq!(first.with(second), whole);
    }
}

/// The coverage points that a branch reaches depend on the observer's state at the end of its parent branch. From the
/// observer's initial state, the same branch reaches other points.
#[test]
fn the_parents_state_matters() {
    let abstraction = Abstraction::new(&raft(), world(2, &[])).unwrap();
    let (head, tail) = ([line(1, 0, "raft", "became leader")], [line(2, 1, "raft", "term 2")]);
    let (_, parent) = run(&abstraction, &head);
    let (from_parent, _) = go_on(&abstraction, parent, &tail);
    let (from_nothing, _) = run(&abstraction, &tail);
    assert_ne!(from_parent, from_nothing);
}

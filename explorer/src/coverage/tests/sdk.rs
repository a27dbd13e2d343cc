//! Tests of the coverage points for assertions, guidance and code edges that programs report through the SDK.

use super::*;
use crate::sdk::{AssertionKind, Guidance, Value};

fn plain() -> Abstraction {
    Abstraction::new(&config(json!({})), world(1, &[])).unwrap()
}

fn assertion(outcome: Outcome) -> Observed {
    let what = What::Assertion { name: "a".to_owned(), kind: AssertionKind::Sometimes, outcome };
    event(1, 0, what)
}

fn number(rank: i64) -> Observed {
    let value = Value::Number { rank, text: rank.to_string() };
    event(1, 0, What::Guidance(Guidance { name: "g".to_owned(), value }))
}

/// Returns the points of this kind that a branch with these events reaches from a state.
fn reached(from: ObserverState, events: &[Observed], kind: Kind) -> (Vec<String>, Delta, ObserverState) {
    let abstraction = plain();
    let mut observer = Observer::start(&abstraction, from).unwrap();
    events.iter().for_each(|event| observer.observe(event));
    let (delta, state) = observer.finish();
    let mut points: Vec<String> = delta
        .points()
        .filter(|(_, reached)| reached.point.kind() == kind)
        .map(|(_, reached)| reached.point.to_string())
        .collect();
    points.sort();
    (points, delta, state)
}

#[test]
fn a_branch_has_the_outcomes_of_its_ancestors() {
    let new = || ObserverState::new(&plain());
    let events = [Outcome::Registered, Outcome::Failed, Outcome::Failed].map(assertion);
    let (points, _, state) = reached(new(), &events, Kind::Assertion);
    assert_eq!(points, ["Sometimes \"a\" failed", "Sometimes \"a\" registered"]);
    let (points, ..) = reached(state, &[assertion(Outcome::Held)], Kind::Assertion);
    assert_eq!(points.len(), 3, "{points:?}");
}

#[test]
fn only_better_numbers_are_new() {
    let new = || ObserverState::new(&plain());
    let (points, first, state) =
        reached(new(), &[number(3), number(-1), number(5), number(5)], Kind::Guidance);
    assert_eq!(points, ["guidance \"g\" is 3", "guidance \"g\" is 5"]);
    let (points, ..) = reached(state, &[number(4), number(6)], Kind::Guidance);
    assert_eq!(points, ["guidance \"g\" is 6"], "a child goes on from the best of its parent");
    let mut coverage = Coverage::default();
    let mut new_in = |choice, delta: &Delta| {
        coverage.merge(choice, delta).unwrap().by_kind.get(&Kind::Guidance).copied().unwrap_or(0)
    };
    assert_eq!(new_in(0, &first), 1, "the best of a branch counts");
    let other = |rank| reached(new(), &[number(rank)], Kind::Guidance).1;
    assert_eq!(
        [new_in(1, &other(4)), new_in(2, &other(6)), new_in(3, &other(6)), new_in(4, &other(2))],
        [0, 1, 0, 0]
    );
}

#[test]
fn each_other_value_and_each_edge_is_new() {
    let other = |text: &str| {
        let value = Value::Other(text.to_owned());
        event(1, 0, What::Guidance(Guidance { name: "g".to_owned(), value }))
    };
    let new = || ObserverState::new(&plain());
    assert_eq!(reached(new(), &[other("x"), other("y"), other("x")], Kind::Guidance).0.len(), 2);
    let edge = |edge| event(1, 0, What::Edge { module: "m".to_owned(), edge });
    assert_eq!(
        reached(new(), &[edge(1), edge(2), edge(1)], Kind::Edge).0,
        ["edge 1 of \"m\"", "edge 2 of \"m\""]
    );
}

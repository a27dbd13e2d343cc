//! Tests that the order of interchangeable nodes has no effect on a world's abstract state.

use super::*;

/// Returns lines in which each node reports its role, the node that it follows, and its term.
fn reports(follows: &[(u16, u64, bool)], names: &dyn Fn(u16) -> u16) -> Vec<Observed> {
    let report = |(node, (leader, term, leads)): (u16, &(u16, u64, bool))| {
        let role = if *leads {
            "became leader".to_owned()
        } else {
            format!("became follower of n{}", names(*leader) + 1)
        };
        // Some lines name the leader by its address.
        let role = if *term == 0 { role.replace(" n", " 10.0.0.") } else { role };
        [line(1, names(node), "raft", &role), line(1, names(node), "raft", &format!("term {term}"))]
    };
    (0u16..).zip(follows).flat_map(report).collect()
}

fn state_of(abstraction: &Abstraction, events: &[Observed]) -> String {
    run(abstraction, events).1.state().to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// The state does not depend on the order of nodes within a group, with one group of six nodes or with two groups.
    #[test]
    fn the_order_of_interchangeable_nodes_does_not_count(
        follows in prop::collection::vec((0u16..6, 0u64..2, prop::bool::weighted(0.2)), 6),
        order in Just((0u16..6).collect::<Vec<u16>>()).prop_shuffle(),
        two_groups: bool,
    ) {
        let all: &[&[&str]] = &[&["n1", "n2", "n3", "n4", "n5", "n6"]];
        let groups: &[&[&str]] = &[&["n1", "n2", "n3"], &["n4", "n5"]];
        let order = |node: u16| match (two_groups, node) {
            (false, _) => order[usize::from(node)],
            // Each of the two groups has the order that its nodes have in `order`.
            (true, 0..3) => order.iter().filter(|n| **n < 3).nth(usize::from(node)).copied().unwrap(),
            (true, 3..5) => order.iter().filter(|n| (3..5).contains(*n)).nth(usize::from(node) - 3).copied().unwrap(),
            (true, _) => node,
        };
        let abstraction = Abstraction::new(&raft(), world(6, if two_groups { groups } else { all })).unwrap();
        let plain = state_of(&abstraction, &reports(&follows, &|node| node));
        prop_assert_eq!(state_of(&abstraction, &reports(&follows, &order)), plain);
    }

    /// If nodes are not declared interchangeable, the state depends on which node leads.
    #[test]
    fn the_order_of_other_nodes_counts(leader in 0u16..3, step in 1u16..3) {
        let other = (leader + step) % 3;
        let lead = |node| [line(1, node, "raft", "became leader")];
        let states = |groups: &[&[&str]]| {
            let abstraction = Abstraction::new(&raft(), world(3, groups)).unwrap();
            [leader, other].map(|node| state_of(&abstraction, &lead(node)))
        };
        let [a, b] = states(&[]);
        prop_assert_ne!(a, b);
        let [a, b] = states(&[&["n1", "n2", "n3"]]);
        prop_assert_eq!(a, b);
    }

    /// Swapping the nodes in all events changes no state, phase or value.
    #[test]
    fn two_interchangeable_nodes_can_be_swapped_in_any_run(events in events(2, 40)) {
        let abstraction = Abstraction::new(&raft(), world(2, &[&["n1", "n2"]])).unwrap();
        let swap = |node: u16| if node < 2 { 1 - node } else { node };
        let swapped: Vec<Observed> = events
            .iter()
            .cloned()
            .map(|mut event| {
                event.node = event.node.map(swap);
                match &mut event.what {
                    What::LogLine { text, .. } => {
                        *text = match text.as_str() {
                            "became follower of n1" => "became follower of n2".to_owned(),
                            "became follower of n2" => "became follower of n1".to_owned(),
                            _ => text.clone(),
                        }
                    }
                    What::Wire { from, to, .. } => (*from, *to) = (swap(*from), swap(*to)),
                    What::Fault { targets, .. } => targets.iter_mut().for_each(|node| *node = swap(*node)),
                    _ => {}
                }
                event
            })
            .collect();
        let (plain, _) = run(&abstraction, &events);
        let (other, _) = run(&abstraction, &swapped);
        prop_assert_eq!(shown(&plain, Kind::State), shown(&other, Kind::State));
        prop_assert_eq!(shown(&plain, Kind::Phase), shown(&other, Kind::Phase));
        prop_assert_eq!(shown(&plain, Kind::Value), shown(&other, Kind::Value));
    }
}

/// Although the nodes are interchangeable, the state depends on how they follow each other: two pairs of nodes that
/// follow each other differ from a ring, and from nodes that follow themselves.
#[test]
fn relations_between_interchangeable_nodes_count() {
    let abstraction = Abstraction::new(&raft(), world(4, &[&["n1", "n2", "n3", "n4"]])).unwrap();
    let state = |leaders: [u16; 4]| {
        let follows: Vec<(u16, u64, bool)> = leaders.iter().map(|leader| (*leader, 1, false)).collect();
        state_of(&abstraction, &reports(&follows, &|node| node))
    };
    let (pairs, ring, pairs_again) = (state([1, 0, 3, 2]), state([1, 2, 3, 0]), state([2, 3, 0, 1]));
    assert_eq!(pairs, pairs_again);
    assert_ne!(pairs, ring);
    assert_ne!(state([0, 1, 2, 3]), pairs);
}

/// The state does not contain the terms that the nodes report. It contains only the rank of each term among the terms
/// of all nodes.
#[test]
fn terms_count_by_rank_alone() {
    let abstraction = Abstraction::new(&raft(), world(3, &[])).unwrap();
    let state = |terms: [u64; 3]| {
        let events: Vec<Observed> =
            (0u16..).zip(terms).map(|(n, term)| line(1, n, "raft", &format!("term {term}"))).collect();
        state_of(&abstraction, &events)
    };
    assert_eq!(state([7, 3, 7]), state([900, 2, 900]));
    assert_ne!(state([7, 3, 7]), state([7, 7, 3]));
    assert_ne!(state([7, 3, 7]), state([7, 3, 8]));
}

/// A group can have too many nodes to try all their orders. Different states then still have different texts. Two
/// states that differ only in the order of the nodes have the same text if no node follows another node.
#[test]
fn large_groups_are_sorted() {
    let names: Vec<String> = (1..=12).map(|i| format!("n{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let abstraction = Abstraction::new(&raft(), world(12, &[&names])).unwrap();
    let lead = |nodes: &[u16]| {
        let events: Vec<Observed> =
            nodes.iter().map(|node| line(1, *node, "raft", "became leader")).collect();
        state_of(&abstraction, &events)
    };
    assert_eq!(lead(&[0, 5]), lead(&[11, 3]));
    assert_ne!(lead(&[0, 5]), lead(&[0, 5, 6]));
    let ring = |step: u16| {
        let follows: Vec<(u16, u64, bool)> = (0u16..12).map(|node| ((node + step) % 12, 1, false)).collect();
        state_of(&abstraction, &reports(&follows, &|node| node))
    };
    assert_ne!(ring(1), ring(2));
}

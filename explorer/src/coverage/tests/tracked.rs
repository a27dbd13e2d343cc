//! Tests of how events change the state of the world and the phases (states) of its nodes, and of the coverage points
//! that faults reach.

use super::*;

fn raft_of(nodes: usize) -> Abstraction {
    Abstraction::new(&raft(), world(nodes, &[])).unwrap()
}

fn exits(at: u64, node: u16, unit: &str, success: bool) -> Observed {
    event(at, node, What::Process { unit: unit.to_owned(), change: ProcessChange::Exited { success } })
}

/// Returns the phase of the first node after these events.
fn phase(abstraction: &Abstraction, events: &[Observed]) -> String {
    run(abstraction, events).1.phase(0).to_owned()
}

#[test]
fn faults_make_nodes_down_and_paused() {
    let abstraction = raft_of(1);
    let mut events = Vec::new();
    for (kind, begins, expected) in [
        ("pause", true, "n1{paused} faults[pause]"),
        ("power_loss", true, "n1{down} faults[pause, power_loss]"),
        ("pause", false, "n1{down} faults[power_loss]"),
        ("power_loss", true, "n1{down} faults[power_loss]"),
        ("power_loss", false, "n1{down} faults[power_loss]"),
        ("power_loss", false, "n1{up} faults[]"),
        ("power_loss", false, "n1{up} faults[]"),
        ("loss", true, "n1{up} faults[loss]"),
    ] {
        events.push(fault(1, kind, &[0, 0], begins));
        assert_eq!(run(&abstraction, &events).1.state(), expected);
    }
}

#[test]
fn restarts_and_exits_reset_variables() {
    let abstraction = raft_of(2);
    let before =
        [line(1, 0, "raft", "became leader"), line(1, 0, "raft", "log has 8"), line(1, 1, "raft", "term 3")];
    let after = |event: Observed| {
        let events: Vec<Observed> = before.iter().cloned().chain([event]).collect();
        phase(&abstraction, &events)
    };
    let all = "up entries=2^^3 role=leader";
    assert_eq!(phase(&abstraction, &before), all);
    assert_eq!(after(fault(2, "power_loss", &[0], true)), "down entries=2^^3");
    assert_eq!(after(fault(2, "reset", &[0], true)), "up entries=2^^3");
    assert_eq!(after(fault(2, "reset", &[1], true)), all);
    assert_eq!(after(exits(2, 0, "raft", true)), "up entries=2^^3");
    assert_eq!(after(exits(2, 0, "other", true)), all);
    assert_eq!(after(exits(2, 0, "other", false)), format!("{all} failed:other"));
    assert_eq!(after(fault(2, "pause", &[0], true)), all.replace("up", "paused"));
}

#[test]
fn failed_units_are_part_of_the_state_until_they_start() {
    let abstraction = raft_of(1);
    let start = event(3, 0, What::Process { unit: "b".to_owned(), change: ProcessChange::Started });
    let events = [exits(1, 0, "b", false), exits(1, 0, "a", false), start, exits(4, 0, "a", true)];
    let phases: Vec<String> = (1..=4).map(|n| phase(&abstraction, &events[..n])).collect();
    assert_eq!(phases, ["up failed:b", "up failed:a failed:b", "up failed:a", "up"]);
}

#[test]
fn without_rules_the_last_templates_are_the_state() {
    let phases = |last: u8, texts: &[&str]| {
        let config = config(json!({ "last": last, "vocabulary": 3 }));
        let abstraction = Abstraction::new(&config, world(1, &[])).unwrap();
        let events: Vec<Observed> = texts.iter().map(|text| line(1, 0, "a", text)).collect();
        phase(&abstraction, &events)
    };
    assert_eq!(phases(1, &["x 1", "y 2"]), "up a:[\"y <n>\"]");
    assert_eq!(phases(2, &["z", "x 1", "y 2", "y 3"]), "up a:[\"x <n>\", \"y <n>\"]");
    assert_eq!(phases(2, &["y", "x"]), phases(2, &["x", "y"]));
    // `vocabulary` is 3, so coverage distinguishes three different lines. The fourth line becomes `other`, and the
    // first three stay distinct.
    assert_eq!(phases(1, &["x", "y", "z", "v"]), "up a:[other]");
    assert_eq!(phases(1, &["x", "y", "z", "w"]), phases(1, &["x", "y", "z", "v"]));
    assert_eq!(phases(1, &["x", "y", "z", "v", "x"]), "up a:[x]");
    // A node's name in a line is masked, even if it is the name of the node that logged the line.
    assert_eq!(phases(1, &["from n1:80"]), "up a:[\"from <node>:<n>\"]");
}

#[test]
fn declared_rules_replace_templates_unless_both_are_requested() {
    for (templates, expected) in [
        ("auto", "up role=leader"),
        ("off", "up role=leader"),
        ("on", "up role=leader raft:[\"became leader\"]"),
    ] {
        let mut config = raft();
        config.templates = serde_json::from_value(json!(templates)).unwrap();
        let abstraction = Abstraction::new(&config, world(1, &[])).unwrap();
        assert_eq!(phase(&abstraction, &[line(1, 0, "raft", "became leader")]), expected);
    }
}

#[test]
fn faults_are_counted_in_the_phase_just_before_them() {
    let abstraction = raft_of(2);
    let events = [
        fault(5, "loss", &[1], true),
        line(6, 0, "raft", "became leader"),
        fault(7, "power_loss", &[0], true),
        fault(8, "power_loss", &[0], false),
    ];
    let (delta, _) = run(&abstraction, &events);
    let expected = ["loss begins in up", "power_loss begins in up role=leader"];
    assert_eq!(shown(&delta, Kind::Fault), expected.map(str::to_owned).into());
    let phases = ["a node is in up", "a node is in up role=leader", "a node is in down"];
    assert_eq!(shown(&delta, Kind::Phase), phases.map(str::to_owned).into());
    let of = |text: &str| delta.points().find(|(_, r)| r.point.to_string() == text).map(|(_, r)| r.vtime_ns);
    assert_eq!(of(phases[0]), Some(5));
    assert_eq!(of(phases[1]), Some(6));
    assert_eq!(of(expected[1]), Some(7));
}

/// Two faults on one node form a pair in the phase in which the second fault begins, and in each later phase while both
/// last. Faults on two nodes form no pair.
#[test]
fn faults_that_meet_on_a_node_are_pairs() {
    let abstraction = raft_of(2);
    let events = [
        fault(1, "loss", &[0], true),
        fault(2, "clog", &[1], true),
        fault(3, "bandwidth", &[0], true),
        line(4, 0, "raft", "became leader"),
        fault(5, "loss", &[0], false),
        line(6, 0, "raft", "became follower of n2"),
    ];
    let (delta, _) = run(&abstraction, &events);
    let expected = ["bandwidth and loss in up", "bandwidth and loss in up role=leader"];
    assert_eq!(shown(&delta, Kind::FaultPair), expected.map(str::to_owned).into());
}

#[test]
fn a_state_is_reached_when_it_is_entered() {
    let abstraction = raft_of(1);
    let (first, state) = run(&abstraction, &[line(1, 0, "raft", "became leader")]);
    assert_eq!(shown(&first, Kind::State).len(), 1);
    let (second, state) =
        go_on(&abstraction, state, &[line(2, 0, "raft", "became leader"), line(3, 0, "x", "y")]);
    assert_eq!(shown(&second, Kind::State).len(), 0);
    let (third, _) = go_on(&abstraction, state, &[line(4, 0, "raft", "term 1")]);
    assert_eq!(shown(&third, Kind::State).len(), 1);
}

#[test]
fn nodes_that_do_not_exist_are_counted() {
    let abstraction = raft_of(1);
    let events = [
        line(1, 1, "raft", "became leader"),
        fault(1, "pause", &[0, 9], true),
        wire(1, WireKind::Deliver, 0, 1, None, "x"),
        wire(1, WireKind::Drop, u16::MAX, 0, None, "x"),
    ];
    let (delta, state) = run(&abstraction, &events);
    assert_eq!((delta.strange(), state.state()), (4, "n1{paused} faults[pause]"));
    let other = Observer::start(&raft_of(2), state).map(|_| ());
    assert_eq!(other, Err(OtherWorld));
}

proptest! {
    /// The observer accepts all events, and all texts stay within their bounds.
    #[test]
    fn any_events_are_accepted(
        texts in prop::collection::vec((".*", "\\PC*", any::<u16>()), 0..20),
        unit in ".{0,100}",
        long in 0usize..3000,
    ) {
        for config in [raft(), AbstractionConfig::default()] {
            let abstraction = Abstraction::new(&config, world(3, &[&["n1", "n2"]])).unwrap();
            let mut events = Vec::new();
            for (a, b, node) in &texts {
                let (node, a) = (node % 4, a.repeat(1 + long / (a.len() + 1)));
                events.push(line(1, node, &unit, &a));
                events.push(line(1, node, &a, b));
                events.push(line(1, node, "raft", &format!("became follower of {a}")));
                events.push(fault(1, &a, &[node], true));
                events.push(event(1, None, What::Console(a.clone())));
                events.push(event(1, node, What::Sdk { name: a.clone(), details: b.clone() }));
                events.push(wire(1, WireKind::Deliver, node, 0, Some(1), &a));
                events.push(event(1, node, What::History { process: 0, f: b.clone(), kind: a }));
            }
            let (delta, state) = run(&abstraction, &events);
            for (id, reached) in delta.points() {
                prop_assert_eq!(reached.point.id(), id);
                prop_assert!(reached.point.to_string().len() < 2 * limits::STATE_BYTES_MAX);
            }
            prop_assert!(state.state().len() <= limits::STATE_BYTES_MAX);
        }
    }
}

//! Tests of the rules that set state variables from log lines: accepted and refused declarations, and the values that
//! rules find in lines.

use everett_input::causes::with_causes;

use super::*;

/// Returns the error for a set of rules.
fn refused(value: serde_json::Value) -> String {
    with_causes(&Abstraction::new(&config(value), world(2, &[])).expect_err("refused"))
}

fn rule(mut more: serde_json::Value) -> serde_json::Value {
    for (key, value) in [("name", "r"), ("regex", "(?P<x>a+)")] {
        if more.get(key).is_none() {
            more[key] = json!(value);
        }
    }
    json!({ "rules": [more] })
}

#[test]
fn errors_name_the_rule() {
    let long = "x".repeat(65);
    let many: Vec<String> = (0..65).map(|i| i.to_string()).collect();
    let captures: String = (0..17).map(|i| format!("(?P<v{i}>a)")).collect();
    for (declared, error) in [
        (rule(json!({ "regex": "(" })), "rule \"r\": regex: regex parse error"),
        (rule(json!({ "regex": "a".repeat(1025) })), "rule \"r\": regex: at most 1024 bytes"),
        (
            rule(json!({ "regex": "(?P<x>a{1000}{1000})" })),
            "rule \"r\": regex: Compiled regex exceeds size limit",
        ),
        (rule(json!({ "regex": "a" })), "rule \"r\": has no variables"),
        (rule(json!({ "regex": captures })), "rule \"r\": at most 16 variables"),
        (rule(json!({ "name": "" })), "rule \"\": name: must have from 1 to 64 bytes"),
        (rule(json!({ "name": long })), "must have from 1 to 64 bytes"),
        (rule(json!({ "unit": "" })), "rule \"r\": unit: must have"),
        (rule(json!({ "nodes": ["n3"] })), "rule \"r\": nodes: there is no node \"n3\""),
        (
            rule(json!({ "captures": { "y": "exact" } })),
            "rule \"r\": captures: the regex has no capture \"y\"",
        ),
        (rule(json!({ "set": { "x": "1" } })), "rule \"r\": variable \"x\": is a capture and in `set`"),
        (rule(json!({ "set": { "a b": "1" } })), "rule \"r\": variable \"a b\": a name has letters"),
        (rule(json!({ "values": { "y": [] } })), "rule \"r\": values: the rule has no variable \"y\""),
        (rule(json!({ "values": { "x": many } })), "rule \"r\": values: \"x\" has more than 64"),
        (
            rule(json!({ "values": { "x": [long] } })),
            "rule \"r\": variable \"x\": a value has at most 64 bytes",
        ),
        (rule(json!({ "set": { "y": long } })), "rule \"r\": variable \"y\": a value has at most 64 bytes"),
        (
            rule(json!({ "captures": { "x": "bucket" }, "values": { "x": ["1"] } })),
            "rule \"r\": values: \"x\" is a number",
        ),
        (
            rule(json!({ "set": { "y": "1" }, "values": { "y": ["2"] } })),
            "rule \"r\": set: \"1\" is not among the values of \"y\"",
        ),
        (
            rule(json!({ "global": true, "captures": { "x": "relative" } })),
            "rule \"r\": captures: \"x\" is global",
        ),
        (
            json!({ "rules": [{ "name": "a", "regex": "(?P<x>b)" }, { "name": "a", "regex": "(?P<x>b)" }] }),
            "rule \"a\": name: another rule has this name",
        ),
        (
            json!({ "rules": [
                { "name": "a", "regex": "(?P<x>b)" },
                { "name": "b", "regex": "(?P<x>b)", "captures": { "x": "bucket" } },
            ] }),
            "rule \"b\": variable \"x\": another rule captures it differently",
        ),
        (json!({ "last": 3 }), "last: must be 1 or 2, not 3"),
        (json!({ "vocabulary": 0 }), "vocabulary: must be from 1 to 256, not 0"),
    ] {
        let message = refused(declared.clone());
        assert!(message.contains(error), "{declared}: {message}");
    }
    let rules: Vec<_> = (0..65).map(|i| json!({ "name": format!("r{i}"), "regex": "(?P<x>a)" })).collect();
    assert_eq!(refused(json!({ "rules": rules })), "at most 64 rules");
}

#[test]
fn unknown_fields_are_refused() {
    for value in [json!({ "rule": [] }), rule(json!({ "units": "a" }))] {
        assert!(
            serde_json::from_value::<AbstractionConfig>(value)
                .unwrap_err()
                .to_string()
                .contains("unknown field")
        );
    }
}

#[test]
fn invalid_worlds_are_refused() {
    let node = |name: &str| NodeNames { name: name.to_owned(), aliases: Vec::new() };
    let groups = |names: &[&str]| vec![names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()];
    for (nodes, groups, error) in [
        (vec![node("a"), node("a")], vec![], WorldError::NameTwice("a".to_owned())),
        (vec![node("")], vec![], WorldError::EmptyName),
        (vec![node("a")], groups(&["b"]), WorldError::NoNode("b".to_owned())),
        (vec![node("a")], groups(&["a", "a"]), WorldError::MemberTwice("a".to_owned())),
        ((0..65).map(|i| node(&i.to_string())).collect(), vec![], WorldError::TooManyNodes),
    ] {
        assert_eq!(World::new(nodes, &groups), Err(error));
    }
    let aliases = (0..17).map(|i| i.to_string()).collect();
    let node = NodeNames { name: "a".to_owned(), aliases };
    assert_eq!(World::new(vec![node], &[]), Err(WorldError::TooManyAliases("a".to_owned())));
}

/// Returns the states after each of these lines. Unit `raft` prints the lines on the first of two nodes.
fn states(config: &AbstractionConfig, lines: &[&str]) -> Vec<String> {
    let abstraction = Abstraction::new(config, world(2, &[])).unwrap();
    let mut observer = Observer::start(&abstraction, ObserverState::new(&abstraction)).unwrap();
    let state = |text: &&str| {
        observer.observe(&line(1, 0, "raft", text));
        observer.state().state().to_owned()
    };
    lines.iter().map(state).collect()
}

#[test]
fn lines_set_variables() {
    let lines = [
        "became follower of n2",
        "term 7",
        "log has 5 entries",
        "log has 0 entries",
        "epoch b",
        "became leader",
        "what else",
    ];
    let role = "role=follower";
    assert_eq!(
        states(&raft(), &lines),
        [
            format!("n1{{up leader=n2 {role}}} n2{{up}} faults[]"),
            format!("n1{{up leader=n2 {role} term=^0}} n2{{up}} faults[]"),
            format!("n1{{up entries=2^^2 leader=n2 {role} term=^0}} n2{{up}} faults[]"),
            format!("n1{{up entries=0 leader=n2 {role} term=^0}} n2{{up}} faults[]"),
            format!("n1{{up entries=0 leader=n2 {role} term=^0}} n2{{up}} faults[] epoch=b"),
            "n1{up entries=0 leader=n2 role=leader term=^0} n2{up} faults[] epoch=b".to_owned(),
            "n1{up entries=0 leader=n2 role=leader term=^0} n2{up} faults[] epoch=b".to_owned(),
        ]
    );
}

#[test]
fn rules_read_only_their_units_and_nodes() {
    for (unit, seen) in [
        ("raft", true),
        ("r*t", true),
        ("*f*", true),
        ("raft*", true),
        ("raf", false),
        ("*x*", false),
        ("r*ft*ft", false),
    ] {
        let config = config(rule(json!({ "unit": unit })));
        assert_eq!(states(&config, &["a"])[0].contains("x=a"), seen, "{unit}");
    }
    for (node, seen) in [("n1", true), ("n2", false)] {
        let config = config(rule(json!({ "nodes": [node] })));
        assert_eq!(states(&config, &["a"])[0].contains("x=a"), seen, "{node}");
    }
}

/// The number of states is bounded even if rules do not declare the possible values of a variable. A rule can map
/// numbers to few values, e.g. to their base-2 logarithm (`bucket`). All other values have a maximum count and length.
#[test]
fn the_number_of_states_is_bounded() {
    let config = config(json!({ "rules": [
        { "name": "a", "regex": "open (?P<open>\\S+)" },
        { "name": "b", "regex": "size (?P<size>\\S+)", "captures": { "size": "bucket" } },
        { "name": "c", "regex": "term (?P<term>\\S+)", "captures": { "term": "relative" } },
    ] }));
    let run = |texts: Vec<String>| {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        states(&config, &texts).into_iter().collect::<BTreeSet<String>>()
    };
    assert_eq!(run((0..1000).map(|i| format!("open v{i}")).collect()).len(), limits::VALUES_MAX + 1);
    assert_eq!(run((0..1024).map(|i| format!("size {i}")).collect()).len(), 11);
    assert_eq!(run((0..1000).map(|i| format!("term {i}")).collect()).len(), 1);
    let huge = run(vec![format!("size {}", "9".repeat(40)), "size -1".to_owned(), "size x".to_owned()]);
    assert_eq!(huge.into_iter().collect::<Vec<_>>(), ["n1{up size=2^^63} n2{up} faults[]"]);
    // Two values that are too long stay different after clipping.
    let long = run(["a", "b"].map(|end| format!("open {}{end}", "x".repeat(500))).to_vec());
    assert_eq!(long.len(), 2);
    assert!(long.iter().all(|state| state.len() < 130));
}

#[test]
fn a_value_cannot_look_like_another_part_of_a_state() {
    let config = config(json!({ "rules": [{ "name": "a", "regex": "v=(?P<v>.*)" }] }));
    let texts = ["n2", "^2", "x} n2{up", "\"n2\"", "a b", "", "other"];
    let all: Vec<String> = texts.iter().map(|text| format!("v={text}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    assert_eq!(states(&config, &all).into_iter().collect::<BTreeSet<_>>().len(), texts.len());
}

//! Changes of a plan: single entries, and the end of all faults.

use super::*;

#[test]
fn an_entry_alone_needs_no_vtime_and_is_checked() {
    let entry = PlanEntry::parse(r#" {"for": "2s", "fault": "pause", "node": "n1"} "#).unwrap();
    assert_eq!((entry.at_ns, entry.for_ns), (0, Some(2_000_000_000)));
    assert_eq!(PlanEntry::parse(r#"{"at": "5ns", "fault": "heal"}"#).unwrap().at_ns, 5);
    for (line, error) in [
        ("", "not JSON: EOF while parsing a value at column 0"),
        ("[]", "expected an object, found a list"),
        (r#"{"fault": "pause"}"#, "node: is missing"),
        (r#"{"at": -1, "fault": "heal"}"#, "at: must not be negative"),
        (r#"{"at": 1, "at": 2, "fault": "heal"}"#, "at: is given twice"),
    ] {
        assert_eq!(PlanEntry::parse(line).unwrap_err(), error, "{line}");
    }
    let long = format!(r#"{{"fault": "{}"}}"#, "x".repeat(limits::PLAN_LINE_BYTES_MAX));
    assert!(PlanEntry::parse(&long).unwrap_err().contains("at most"));
}

#[test]
fn a_healed_plan_holds_nothing_and_keeps_its_ids() {
    let plan = parse(concat!(
        "{\"at\": \"1s\", \"for\": \"10s\", \"fault\": \"pause\", \"node\": \"n1\"}\n",
        "{\"at\": \"2s\", \"fault\": \"loss\", \"links\": \"all\", \"ppm\": 1}\n",
        "{\"at\": \"4s\", \"fault\": \"pause\", \"node\": \"n2\"}\n",
    ))
    .unwrap();
    let (healed, cursor) = plan.healed_at(3_000_000_000);
    assert_eq!(healed.events().next(&cursor), None);
    let entries = healed.entries();
    assert_eq!(entries.iter().map(|entry| entry.what.name()).collect::<Vec<_>>(), ["pause", "loss", "heal"]);
    assert_eq!(entries[0].for_ns, Some(2_000_000_000));
    // The plan is valid, and the node is free for another fault.
    let mut entries = entries.to_vec();
    entries.push(PlanEntry { at_ns: 3_000_000_000, ..plan.entries()[0].clone() });
    let longer = Plan::new(entries, &names()).unwrap();
    assert!(healed.events().agree_up_to(&cursor, &longer.events()));
}

//! Tests of coverage, with a shared world, its events, and helpers that print the coverage points that were reached.

mod cut;
mod estimates;
mod exploration;
mod gaps;
mod order;
mod rules;
mod sdk;
mod symmetry;
mod tracked;

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Returns a world with nodes `n1`, `n2`, …, each with an address. `interchangeable` lists the groups.
fn world(nodes: usize, interchangeable: &[&[&str]]) -> World {
    let node = |i| NodeNames { name: format!("n{i}"), aliases: vec![format!("10.0.0.{i}")] };
    let groups: Vec<Vec<String>> =
        interchangeable.iter().map(|group| group.iter().map(|name| (*name).to_owned()).collect()).collect();
    World::new((1..=nodes).map(node).collect(), &groups).unwrap()
}

fn config(value: serde_json::Value) -> AbstractionConfig {
    serde_json::from_value(value).unwrap()
}

/// Returns rules for roles, terms, lengths, and the leader that a node follows.
fn raft() -> AbstractionConfig {
    config(json!({ "rules": [
        { "name": "leader", "unit": "raft", "regex": "became leader", "set": { "role": "leader" },
          "values": { "role": ["leader", "candidate"] } },
        { "name": "follower", "unit": "raft", "regex": "became follower of (?P<leader>\\S+)",
          "set": { "role": "follower" } },
        { "name": "term", "regex": "term (?P<term>\\d+)", "captures": { "term": "relative" } },
        { "name": "length", "regex": "log has (?P<entries>\\d+)", "captures": { "entries": "bucket" },
          "reset_on": [] },
        { "name": "epoch", "regex": "epoch (?P<epoch>\\w+)", "global": true },
    ] }))
}

fn event(vtime_ns: u64, node: impl Into<Option<u16>>, what: What) -> Observed {
    Observed { vtime_ns, node: node.into(), what }
}

fn line(vtime_ns: u64, node: u16, unit: &str, text: &str) -> Observed {
    event(vtime_ns, node, What::LogLine { unit: unit.to_owned(), text: text.to_owned() })
}

fn fault(vtime_ns: u64, kind: &str, targets: &[u16], begins: bool) -> Observed {
    event(vtime_ns, None, What::Fault { kind: kind.to_owned(), targets: targets.to_vec(), begins })
}

fn wire(vtime_ns: u64, kind: WireKind, from: u16, to: u16, message: Option<u64>, summary: &str) -> Observed {
    event(vtime_ns, None, What::Wire { kind, from, to, message, summary: summary.to_owned() })
}

/// Observes events with an observer that starts in `state`. Returns the reached points and the observer's last state.
fn go_on(abstraction: &Abstraction, state: ObserverState, events: &[Observed]) -> (Delta, ObserverState) {
    let mut observer = Observer::start(abstraction, state).unwrap();
    events.iter().for_each(|event| observer.observe(event));
    observer.finish()
}

/// Observes events with an observer that starts in its initial state.
fn run(abstraction: &Abstraction, events: &[Observed]) -> (Delta, ObserverState) {
    go_on(abstraction, ObserverState::new(abstraction), events)
}

/// Returns the points of a kind, formatted for reports.
fn shown(delta: &Delta, kind: Kind) -> BTreeSet<String> {
    delta.points().filter(|(_, r)| r.point.kind() == kind).map(|(_, r)| r.point.to_string()).collect()
}

/// Generates events of all sorts with few nodes and few words, so that the events interact. Some events name an unknown
/// node.
fn events(nodes: u16, most: usize) -> impl Strategy<Value = Vec<Observed>> {
    let node = move || 0..nodes;
    let name = move || (1..=nodes).prop_map(|i| format!("n{i}"));
    let text = prop_oneof![
        Just("became leader".to_owned()),
        name().prop_map(|name| format!("became follower of {name}")),
        (0u64..4).prop_map(|term| format!("term {term}")),
        (0u64..40).prop_map(|entries| format!("log has {entries} entries")),
        "epoch [a-c]",
        "[a-d]{1,3} [0-9]",
    ];
    let unit = prop::sample::select(vec!["raft", "other"]);
    let kind = prop::sample::select(vec!["power_loss", "pause", "reset", "partition"]);
    let step = prop::sample::select(vec![
        WireKind::Send,
        WireKind::Deliver,
        WireKind::Duplicate,
        WireKind::Drop,
        WireKind::Timeout,
    ]);
    let change = prop::sample::select(vec![
        ProcessChange::Started,
        ProcessChange::Exited { success: true },
        ProcessChange::Exited { success: false },
    ]);
    let disk = prop::sample::select(vec![DiskEvent::Flush, DiskEvent::Loss { lost: true }]);
    let targets = prop::collection::vec(0..=nodes, 1..3);
    let one = prop_oneof![
        4 => (node(), unit.clone(), text).prop_map(|(node, unit, text)| line(0, node, unit, &text)),
        2 => (kind, targets, any::<bool>()).prop_map(|(kind, targets, begins)| fault(0, kind, &targets, begins)),
        4 => (step, node(), node(), prop::option::of(0u64..12), "[A-C]")
            .prop_map(|(kind, from, to, message, summary)| wire(0, kind, from, to, message, &summary)),
        1 => (node(), unit, change)
            .prop_map(|(n, unit, change)| event(0, n, What::Process { unit: unit.to_owned(), change })),
        1 => (node(), disk).prop_map(|(node, disk)| event(0, node, What::Disk(disk))),
        1 => (node(), "[a-c]{1,2}").prop_map(|(node, text)| event(0, node, What::Console(text))),
        1 => (node(), "[a-b]", "term [0-3]")
            .prop_map(|(node, name, details)| event(0, node, What::Sdk { name, details })),
        1 => (0..=nodes, "[rw]", "ok|fail")
            .prop_map(|(n, f, kind)| event(0, n, What::History { process: 1, f, kind })),
    ];
    prop::collection::vec((one, 0u64..3), 0..most).prop_map(|mut steps| {
        let mut now = 0;
        for (event, later) in &mut steps {
            now += *later;
            event.vtime_ns = now;
        }
        steps.into_iter().map(|(event, _)| event).collect()
    })
}

//! Tests of properties, with a shared world, and helpers that look for violations (hits) in its events.

mod declared;
mod drawn;
mod judged;
mod records;

use serde_json::json;

use super::*;

/// Returns names of nodes in different forms.
fn nodes() -> Vec<String> {
    ["alpha", "beta", "n1"].map(str::to_owned).into()
}

fn configs(value: serde_json::Value) -> Vec<PropertyConfig> {
    serde_json::from_value(value).unwrap()
}

fn properties(value: serde_json::Value, ignore: &[&str]) -> Properties {
    let ignore: Vec<String> = ignore.iter().map(|name| (*name).to_owned()).collect();
    Properties::new(&configs(value), &ignore, &nodes()).unwrap()
}

fn event(vtime_ns: u64, node: impl Into<Option<u16>>, what: What<'_>) -> Event<'_> {
    Event { vtime_ns, node: node.into(), what }
}

fn line<'t>(node: u16, unit: &'t str, text: &'t str) -> Event<'t> {
    event(7, node, What::Line { unit, is_error: false, text })
}

fn console(node: u16, text: &str) -> Event<'_> {
    event(7, node, What::Console(text))
}

/// Checks events against the properties with a new [`Judge`], and returns the names of the violated properties.
fn hit(properties: &Properties, events: &[Event<'_>]) -> Vec<String> {
    let mut judge = Judge::start(properties, JudgeState::default());
    events.iter().flat_map(|event| judge.observe(event).to_vec()).map(|hit| hit.property).collect()
}

/// Checks one event against the properties with a new [`Judge`], and returns the only violation.
fn only(properties: &Properties, event: &Event<'_>) -> PropertyHit {
    let mut judge = Judge::start(properties, JudgeState::default());
    let [hit] = judge.observe(event) else { panic!("{event:?}") };
    hit.clone()
}

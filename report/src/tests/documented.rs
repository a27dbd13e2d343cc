//! Tests that `docs/report-data.md` names exactly the fields of the report's data.

use std::collections::BTreeSet;

use serde_json::Value;

use super::sample::data;

const PAGE: &str = include_str!("../../../docs/report-data.md");

/// Adds the paths of all fields, such as `findings[].cpu.mean`.
fn fields(value: &Value, path: &str, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                fields(value, &path, all);
                all.insert(path);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| fields(value, &format!("{path}[]"), all)),
        _ => {}
    }
}

#[test]
fn all_fields_are_documented() {
    let mut there = BTreeSet::new();
    fields(&serde_json::to_value(data("x")).unwrap(), "", &mut there);
    // Two types occur in several places. They are described once, as OUTLOOK and FAULT.
    let one = |path: &str| {
        let mut path = path.to_owned();
        for (long, short) in [
            ("findings[].cpu", "OUTLOOK"),
            ("findings[].instructions", "OUTLOOK"),
            ("gone[].cpu", "OUTLOOK"),
            ("gone[].instructions", "OUTLOOK"),
            ("findings[].scene.faults[]", "FAULT"),
            ("findings[].plan.faults[]", "FAULT"),
            ("findings[].causality.jump.before", "SHARE"),
            ("findings[].causality.jump.after", "SHARE"),
            ("findings[].causality.jump.steps[]", "STEP"),
            ("findings[].causality.jump.steps_before[]", "STEP"),
            ("findings[].causality.jump.steps_after[]", "STEP"),
            ("findings[].causality.jump.context[]", "STEP"),
        ] {
            if let Some(rest) = path.strip_prefix(&format!("{long}.")) {
                path = format!("{short}.{rest}");
            }
        }
        match path.strip_prefix("findings[].causality.points[].") {
            Some(rest) if rest != "vtime_ns" => format!("SHARE.{rest}"),
            _ => path,
        }
    };
    let there: BTreeSet<String> = there.iter().map(|path| one(path)).collect();
    let rows = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name.to_owned()));
    let documented: BTreeSet<String> = rows.collect();
    let missing: Vec<_> = there.difference(&documented).collect();
    let stale: Vec<_> = documented.difference(&there).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "not documented: {missing:#?}\nnot in the data: {stale:#?}"
    );
}

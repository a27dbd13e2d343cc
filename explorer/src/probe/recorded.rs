//! Probes in the world that a run directory records.

use serde_json::Value;

/// Rule of a probe's declaration about its hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// True if a hit can violate the probe.
    pub is_property: bool,
    /// True if the probe can be judged only at a hit. A probe with `never` holds without one.
    pub needs_hit: bool,
    /// True if at least one branch should have a hit.
    pub is_sometimes: bool,
}

/// Returns the names of the recorded probes, and what their declarations say.
pub fn recorded(world: &Value) -> impl Iterator<Item = (&str, Recorded)> {
    let all = world.get("probe").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|probe| {
        let has = |key: &str| probe.get(key).is_some_and(|value| !value.is_null() && value != false);
        let needs_hit = has("always") || has("never_decreases");
        let is_property = needs_hit || has("never");
        let name = probe.get("name").and_then(Value::as_str)?;
        Some((name, Recorded { is_property, needs_hit, is_sometimes: has("sometimes") }))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::probe::ProbeConfig;

    #[test]
    fn declarations_are_read_back() {
        let of = |text: &str| {
            let probe: ProbeConfig = toml::from_str(&format!("name = \"p\"\nat = \"a:f\"\n{text}")).unwrap();
            let world = json!({ "probe": [probe] });
            let (name, recorded) = recorded(&world).next().unwrap();
            assert_eq!(name, "p");
            (recorded.is_property, recorded.needs_hit, recorded.is_sometimes)
        };
        assert_eq!(of("always = \"x\""), (true, true, false));
        assert_eq!(of("value = \"x\"\nnever_decreases = \"node\"\nsometimes = true"), (true, true, true));
        assert_eq!(of("never = true"), (true, false, false));
        assert_eq!(of("log = true\nnever = false"), (false, false, false));
        assert_eq!(recorded(&json!({ "probe": [1, { "name": 2 }] })).count(), 0);
        assert_eq!(recorded(&json!(null)).count(), 0);
    }
}

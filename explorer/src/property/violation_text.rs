//! Words for violations. A property is named by what should hold, and a finding says what happened.

use serde_json::Value;

use super::builtin;

/// Returns the words for a violation of a property: those that the world declares; else the name, if it is that of a
/// built-in property, which is a violation's; else that the property does not hold. `world` is the record of the world in a
/// run directory.
#[must_use]
pub fn violation(world: &Value, property: &str) -> String {
    match declared(world, property) {
        Some(words) => words.to_owned(),
        None if builtin::names().any(|name| name == property) => property.to_owned(),
        None => format!("\"{property}\" does not hold"),
    }
}

/// Returns the words that the world declares for a violation of a property.
#[must_use]
pub fn declared<'w>(world: &'w Value, property: &str) -> Option<&'w str> {
    let all = world.get("property")?.as_array()?;
    let of = |one: &&Value| one.get("name").and_then(Value::as_str) == Some(property);
    all.iter().find(of)?.get("violated")?.as_str()
}

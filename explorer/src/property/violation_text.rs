//! Descriptions of violations. A property's name says what should hold, and a finding's description says what happened.

use serde_json::Value;

use super::builtin;

/// Returns the description of a violation of a property. If the world declares no description, a built-in property is
/// described by its name, and any other property by its name and "does not hold". `world` is the world as a run
/// directory stores it.
#[must_use]
pub fn violation(world: &Value, property: &str) -> String {
    match declared(world, property) {
        Some(words) => words.to_owned(),
        None if builtin::names().any(|name| name == property) => property.to_owned(),
        None => format!("\"{property}\" does not hold"),
    }
}

/// Returns the description that the world declares for violations of a property, if any.
#[must_use]
pub fn declared<'w>(world: &'w Value, property: &str) -> Option<&'w str> {
    let tables = ["property", "probe"].into_iter().filter_map(|table| world.get(table)?.as_array());
    let of = |one: &&Value| one.get("name").and_then(Value::as_str) == Some(property);
    tables.flatten().find(of)?.get("violated")?.as_str()
}

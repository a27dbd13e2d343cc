//! One line of a history: from text to an event.
//!
//! Not here: what the operation's name and value mean (`super::shape`), and how events go together (`super::reader`).

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::limits::LINE_BYTES_MAX;
use super::problem::Wrong;
use crate::plan::problem::quoted;

/// A line as the host has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When it was written, in nanoseconds of vtime.
    pub vtime_ns: u64,
    /// The node on which.
    pub node: String,
    /// The JSON object.
    pub text: String,
}

/// What an event says of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    /// It starts.
    Invoke,
    /// It happened.
    Ok,
    /// It did not happen and never will.
    Fail,
    /// Nobody knows.
    Info,
}

impl EventKind {
    const NAMES: [(&'static str, EventKind); 4] =
        [("invoke", Self::Invoke), ("ok", Self::Ok), ("fail", Self::Fail), ("info", Self::Info)];
}

/// A line that could be read.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) kind: EventKind,
    /// As JSON: the client 3 is not the client `"3"`.
    pub(super) process: String,
    pub(super) f: Option<String>,
    /// As JSON. None and null are the same.
    pub(super) key: Option<String>,
    /// None if there was none, which null is not.
    pub(super) value: Option<Value>,
}

#[derive(Deserialize)]
struct Fields {
    #[serde(rename = "type")]
    kind: Option<Value>,
    process: Option<Value>,
    f: Option<Value>,
    key: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    value: Option<Value>,
}

fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Read a line. Fields that have no meaning here are passed over.
pub(super) fn read(text: &str) -> Result<Event, Wrong> {
    if text.len() > LINE_BYTES_MAX {
        return Err(Wrong::LineTooLong);
    }
    // Serde would take an array for the fields in their order.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(Wrong::NotAnObject);
    }
    let fields: Fields = serde_json::from_str(text).map_err(|error| Wrong::NotJson(reason(&error)))?;
    let kind = match fields.kind.ok_or(Wrong::Missing("type"))? {
        Value::String(name) => EventKind::NAMES
            .into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, kind)| kind)
            .ok_or_else(|| Wrong::UnknownType(quoted(&name)))?,
        _ => return Err(Wrong::Type { field: "type", expected: "a text" }),
    };
    let process = match fields.process.ok_or(Wrong::Missing("process"))? {
        process @ Value::String(_) => process.to_string(),
        Value::Number(number) if number.is_i64() || number.is_u64() => number.to_string(),
        _ => return Err(Wrong::Type { field: "process", expected: "an integer or a text" }),
    };
    let f = match fields.f {
        None => None,
        Some(Value::String(f)) => Some(f),
        Some(_) => return Err(Wrong::Type { field: "f", expected: "a text" }),
    };
    let key = match fields.key {
        None => None,
        Some(Value::Array(_) | Value::Object(_)) => {
            return Err(Wrong::Type { field: "key", expected: "a text, a number, true or false" });
        }
        Some(key) => Some(exact(key).ok_or(Wrong::Inexact("key"))?.to_string()),
    };
    let value = match fields.value {
        None => None,
        Some(value) => Some(exact(value).ok_or(Wrong::Inexact("value"))?),
    };
    Ok(Event { kind, process, f, key, value })
}

/// The library's message counts lines of its own, of which there is always one.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!("{what} at column {}", error.column())
}

/// The value with each number in one form: 1.0 is 1. `None` if a number is too large to be told from its neighbours,
/// as integers beyond 64 bits are.
///
/// The only floats of histories are here; from here on, numbers are text.
pub(super) fn exact(value: Value) -> Option<Value> {
    Some(match value {
        Value::Number(number) if !number.is_i64() && !number.is_u64() => {
            let float = number.as_f64()?;
            if float.abs() >= 9_007_199_254_740_992.0 {
                return None;
            }
            // Exact: a whole number below 2^53.
            #[expect(clippy::cast_possible_truncation, reason = "checked above")]
            if float.trunc() == float { Value::from(float as i64) } else { Value::Number(number) }
        }
        Value::Array(items) => Value::Array(items.into_iter().map(exact).collect::<Option<_>>()?),
        Value::Object(fields) => Value::Object(
            fields.into_iter().map(|(name, value)| Some((name, exact(value)?))).collect::<Option<_>>()?,
        ),
        other => other,
    })
}

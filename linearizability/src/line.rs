//! One line of a history, parsed to an event.
//!
//! Not here: the meaning of an operation's name and value (`super::shape`), and the matching of invocations and
//! completions (`super::reader`).

use everett_input::text::quoted;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::error::Wrong;
use super::limits::HISTORY_LINE_BYTES_MAX;

/// Line as Everett received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryLine {
    /// Vtime at which the line was written, in nanoseconds.
    pub vtime_ns: u64,
    /// Node on which the line was written.
    pub node: String,
    /// Text of the line: a JSON object.
    pub text: String,
}

/// Type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    /// The operation starts.
    Invoke,
    /// The operation ended, and it took effect.
    Ok,
    /// The operation ended. It did not take effect, and never will.
    Fail,
    /// The operation ended, and its outcome is unknown.
    Info,
}

impl EventKind {
    const NAMES: [(&'static str, EventKind); 4] =
        [("invoke", Self::Invoke), ("ok", Self::Ok), ("fail", Self::Fail), ("info", Self::Info)];
}

/// Parsed line.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) kind: EventKind,
    /// Name of the client, as JSON. The clients `3` and `"3"` are different.
    pub(super) process: String,
    pub(super) f: Option<String>,
    /// Key, as JSON. `None` if the key is missing or null.
    pub(super) key: Option<String>,
    /// Argument or result. `None` if the field is missing. Null is a value.
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

/// Parses a line. Unknown fields are ignored.
pub(super) fn read(text: &str) -> Result<Event, Wrong> {
    if text.len() > HISTORY_LINE_BYTES_MAX {
        return Err(Wrong::LineTooLong);
    }
    // Check for an object first, because serde would also accept an array with the fields in order.
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
        Some(mut key) => {
            if !make_exact(&mut key) {
                return Err(Wrong::Inexact("key"));
            }
            Some(key.to_string())
        }
    };
    let mut value = fields.value;
    if !value.as_mut().is_none_or(make_exact) {
        return Err(Wrong::Inexact("value"));
    }
    Ok(Event { kind, process, f, key, value })
}

/// Returns the message of a JSON error without its line number, which is always 1.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!("{what} at column {}", error.column())
}

/// Converts each number in the value to canonical form, e.g. 1.0 to 1. Returns false if a number cannot be represented
/// exactly, e.g. an integer of more than 64 bits.
///
/// No other function handles floats. All other functions handle the numbers of a history as JSON text.
pub(super) fn make_exact(value: &mut Value) -> bool {
    match value {
        Value::Number(number) if !number.is_i64() && !number.is_u64() => {
            let Some(float) = number.as_f64().filter(|float| float.abs() < 9_007_199_254_740_992.0) else {
                return false;
            };
            if float.trunc() == float {
                // The conversion is exact, because the integer is below 2^53.
                #[expect(clippy::cast_possible_truncation, reason = "checked above")]
                let integer = float as i64;
                *value = Value::from(integer);
            }
            true
        }
        Value::Array(items) => items.iter_mut().all(make_exact),
        Value::Object(fields) => fields.values_mut().all(make_exact),
        _ => true,
    }
}

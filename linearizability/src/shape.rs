//! Conversion of an operation's name and JSON values to an operation, for each model (the rules of a data type).
//!
//! | model | operations (and other names) | argument | result |
//! |---|---|---|---|
//! | `register` | `read` (`get`) | | value |
//! | | `write` (`put`, `set`) | value | |
//! | `cas` | `cas`, and those of `register` | `[old, new]` | |
//! | `kv` | `delete` (`del`), and those of `cas` | | |
//! | `queue` | `enqueue` | value, not null | |
//! | | `dequeue` | | value, null if empty |
//! | `set` | `add`, `remove` | value, not null | |
//! | | `contains` | value, not null | `[value, bool]` |
//! | | `read` (`members`) | | array without repetition |
//! | `lock` | `acquire` (`lock`), `release` (`unlock`) | | |
//!
//! If an operation has no result, the field `value` of its completion (the record that the operation has ended) is
//! ignored, because drivers (client programs) may store the server's reply there.

use everett_input::text::quoted;
use serde_json::Value;

use super::error::Wrong;
use super::operation::{Answer, Call};
use super::spec::ModelKind;
use super::values::{V, Values};

/// Canonical name of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Read,
    Write,
    Cas,
    Delete,
    Enqueue,
    Dequeue,
    Add,
    Remove,
    Contains,
    Members,
    Acquire,
    Release,
}

const REGISTER: &[(&str, Word)] = &[
    ("read", Word::Read),
    ("get", Word::Read),
    ("write", Word::Write),
    ("put", Word::Write),
    ("set", Word::Write),
];
const CAS: &[(&str, Word)] = &[("cas", Word::Cas)];
const DELETE: &[(&str, Word)] = &[("delete", Word::Delete), ("del", Word::Delete)];
const QUEUE: &[(&str, Word)] = &[("enqueue", Word::Enqueue), ("dequeue", Word::Dequeue)];
const SET: &[(&str, Word)] = &[
    ("add", Word::Add),
    ("remove", Word::Remove),
    ("contains", Word::Contains),
    ("read", Word::Members),
    ("members", Word::Members),
];
const LOCK: &[(&str, Word)] = &[
    ("acquire", Word::Acquire),
    ("lock", Word::Acquire),
    ("release", Word::Release),
    ("unlock", Word::Release),
];

pub(super) fn words(kind: ModelKind) -> impl Iterator<Item = (&'static str, Word)> {
    let tables: &[&[(&str, Word)]] = match kind {
        ModelKind::Register => &[REGISTER],
        ModelKind::Cas => &[REGISTER, CAS],
        ModelKind::Kv => &[REGISTER, CAS, DELETE],
        ModelKind::Queue => &[QUEUE],
        ModelKind::Set => &[SET],
        ModelKind::Lock => &[LOCK],
    };
    tables.iter().flat_map(|table| table.iter().copied())
}

/// Returns the operation with this name.
pub(super) fn word(kind: ModelKind, f: &str) -> Result<Word, Wrong> {
    words(kind).find(|(name, _)| *name == f).map(|(_, word)| word).ok_or_else(|| {
        let known: Vec<&str> = words(kind).map(|(name, _)| name).collect();
        Wrong::NoOperation { f: quoted(f), model: kind.name(), known: known.join(", ") }
    })
}

/// Combines an operation's name with its argument.
pub(super) fn call(word: Word, value: Option<Value>, values: &mut Values) -> Result<Call, Wrong> {
    Ok(match word {
        Word::Read => Call::Read,
        Word::Delete => Call::Delete,
        Word::Dequeue => Call::Dequeue,
        Word::Members => Call::Members,
        Word::Acquire => Call::Acquire,
        Word::Release => Call::Release,
        Word::Write => match value {
            Some(value) => Call::Write(number(&value, values)),
            None => return Err(Wrong::Value { f: "write", expected: "what is written" }),
        },
        Word::Cas => match items(value.as_ref()) {
            Some([old, new]) => Call::Cas(number(old, values), number(new, values)),
            _ => return Err(Wrong::Value { f: "cas", expected: "[old, new]" }),
        },
        Word::Enqueue => Call::Enqueue(element("enqueue", value, values)?),
        Word::Add => Call::Add(element("add", value, values)?),
        Word::Remove => Call::Remove(element("remove", value, values)?),
        Word::Contains => Call::Contains(element("contains", value, values)?),
    })
}

/// Returns the result of an acknowledged operation.
pub(super) fn answer(call: Call, value: Option<Value>, values: &mut Values) -> Result<Answer, Wrong> {
    Ok(match call {
        Call::Read | Call::Dequeue => Answer::Value(number(&value.unwrap_or_default(), values)),
        Call::Contains(element) => match items(value.as_ref()) {
            Some([of, Value::Bool(holds)]) if number(of, values) == element => Answer::Holds(*holds),
            _ => {
                let expected = "[value, true or false], with the value of the invocation";
                return Err(Wrong::Value { f: "contains", expected });
            }
        },
        Call::Members => {
            let expected = "an array of the members, each once";
            let Some(items) = items(value.as_ref()) else {
                return Err(Wrong::Value { f: "read", expected });
            };
            let mut members: Vec<V> = items.iter().map(|item| number(item, values)).collect();
            members.sort_unstable();
            if members.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
                return Err(Wrong::Value { f: "read", expected });
            }
            Answer::Members(members.into())
        }
        _ => Answer::Done,
    })
}

fn items(value: Option<&Value>) -> Option<&[Value]> {
    value?.as_array().map(Vec::as_slice)
}

fn number(value: &Value, values: &mut Values) -> V {
    values.number(value.to_string())
}

/// Returns an element of a queue or set. Null is refused, because it means that there is no element.
fn element(f: &'static str, value: Option<Value>, values: &mut Values) -> Result<V, Wrong> {
    match value {
        None | Some(Value::Null) => Err(Wrong::Value { f, expected: "an element, which null is not" }),
        Some(value) => Ok(number(&value, values)),
    }
}

//! Reads lines of operation histories as operations, from invocation to answer.

use std::collections::BTreeMap;

use everett_input::units::parse_duration_ns;
use serde::Serialize;
use serde_json::Value;

use crate::clip::clip;

/// Maximum number of operations.
const OPERATIONS_MAX: usize = 20_000;
/// Maximum length of a displayed value, in characters.
const VALUE_CHARS_MAX: usize = 80;

/// Operation of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Operation {
    /// Name that the client gives itself.
    pub process: String,
    /// Index of the client's node. `None` if it is not known.
    pub lane: Option<u16>,
    /// Name of the operation.
    pub f: String,
    /// Object of the operation, if it has a name.
    pub key: Option<String>,
    /// Value of the invocation, shortened. Empty if there is none.
    pub value: String,
    /// Value of the answer, shortened. Empty if there is none.
    pub answer: String,
    /// Vtime of the invocation, in nanoseconds.
    pub begin_ns: u64,
    /// Vtime of the answer, in nanoseconds. `None` without an answer.
    pub end_ns: Option<u64>,
    /// Outcome.
    pub outcome: Outcome,
    /// True if the finding names the operation.
    pub marked: bool,
}

/// Outcome of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The operation happened.
    Ok,
    /// The operation did not happen, and never will.
    Fail,
    /// The operation may have happened, or may happen later.
    Unknown,
}

/// Operations that are being read.
#[derive(Default)]
pub(super) struct Operations {
    all: Vec<Operation>,
    /// Indices of operations without an answer. The key is node and process.
    open: BTreeMap<(Option<u16>, String), usize>,
}

impl Operations {
    /// Reads a line of a history.
    pub(super) fn line(&mut self, at_ns: u64, lane: Option<u16>, text: &str) {
        let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(text) else { return };
        let word = |name: &str| fields.get(name).and_then(Value::as_str);
        let process = match fields.get("process") {
            Some(Value::String(name)) => short(name),
            Some(number) => short(&number.to_string()),
            None => return,
        };
        let value = shown(fields.get("value"));
        let who = (lane, process.clone());
        let outcome = match word("type") {
            Some("invoke") => {
                if self.all.len() >= OPERATIONS_MAX {
                    return;
                }
                let key = fields.get("key").map(|key| shown(Some(key)));
                let f = short(word("f").unwrap_or("?"));
                self.open.insert(who, self.all.len());
                self.all.push(Operation {
                    process,
                    lane,
                    f,
                    key,
                    value,
                    answer: String::new(),
                    begin_ns: at_ns,
                    end_ns: None,
                    outcome: Outcome::Unknown,
                    marked: false,
                });
                return;
            }
            Some("ok") => Outcome::Ok,
            Some("fail") => Outcome::Fail,
            Some("info") => Outcome::Unknown,
            _ => return,
        };
        // The invocation may lie before the first available line.
        let Some(place) = self.open.remove(&who) else { return };
        if let Some(operation) = self.all.get_mut(place) {
            (operation.end_ns, operation.outcome, operation.answer) = (Some(at_ns), outcome, value);
        }
    }

    /// Returns the operations. Marks those that begin or end at a time that `text`, the text of the finding, names.
    pub(super) fn finish(mut self, text: &str) -> Vec<Operation> {
        let times = times(text);
        for operation in &mut self.all {
            let ends = [Some(operation.begin_ns), operation.end_ns];
            operation.marked = ends.into_iter().flatten().any(|at| times.contains(&at));
        }
        self.all
    }
}

/// Returns the times in a text (words such as `5.48s`), in nanoseconds.
fn times(text: &str) -> Vec<u64> {
    let words = text.split([' ', '(', ')', ',', ';', ':']);
    let digits = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    words.filter(digits).filter_map(|word| parse_duration_ns(word).ok()).collect()
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => short(text),
        Some(value) => short(&value.to_string()),
    }
}

fn short(text: &str) -> String {
    clip(text, VALUE_CHARS_MAX)
}

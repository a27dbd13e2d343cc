//! Errors in the lines of a history.

use super::limits::{
    HISTORY_BYTES_MAX, HISTORY_LINE_BYTES_MAX, OPERATIONS_MAX, PROBLEMS_MAX, QUOTED_CHARS_MAX,
};

/// All errors in a history, in the order of its lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problems {
    /// First errors, at most [`PROBLEMS_MAX`].
    pub first: Vec<Problem>,
    /// Number of all errors.
    pub count: u64,
}

impl Problems {
    pub(super) fn add(&mut self, problem: Problem) {
        self.count += 1;
        if self.first.len() < PROBLEMS_MAX {
            self.first.push(problem);
        }
    }
}

/// Error in a line, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Number of the line in the history, from 1.
    pub line: u64,
    /// Vtime at which the line was written, in nanoseconds.
    pub vtime_ns: u64,
    /// Description of the error.
    pub what: Wrong,
}

/// Error in a line. Messages quote and shorten names and values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Wrong {
    /// The line is too long.
    #[error("a line has at most {HISTORY_LINE_BYTES_MAX} bytes")]
    LineTooLong,
    /// The line is not JSON, or has a field twice.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// The line is JSON, but not an object.
    #[error("not a JSON object")]
    NotAnObject,
    /// A required field is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A field has the wrong type.
    #[error("{field} must be {expected}")]
    Type { field: &'static str, expected: &'static str },
    /// A number is too large to be represented exactly.
    #[error("{0} has a number that is not exact; write it as a text")]
    Inexact(&'static str),
    /// The type is unknown.
    #[error("unknown type {0}; the types are invoke, ok, fail and info")]
    UnknownType(String),
    /// The model has no operation with this name.
    #[error("a {model} has no operation {f}; it has {known}")]
    NoOperation { f: String, model: &'static str, known: String },
    /// The operation cannot have this argument or result.
    #[error("the value of {f} must be {expected}")]
    Value { f: &'static str, expected: &'static str },
    /// A completion (an event of type ok, fail or info) belongs to a process without an open operation.
    #[error(
        "process {process} has no open operation to complete; this one may have happened at any time, or never"
    )]
    NotInvoked { process: String },
    /// A process invokes an operation while its previous operation is still open.
    #[error(
        "process {process} starts another operation while its operation of line {line} is open; the outcome of line {line} is now unknown"
    )]
    StillOpen { process: String, line: u64 },
    /// A completion does not match the process's open operation.
    #[error(
        "{field} differs from the invocation in line {line}; the outcome of that operation is now unknown"
    )]
    NotThatInvoked { field: &'static str, line: u64 },
    /// The history has too many operations.
    #[error("a history has at most {OPERATIONS_MAX} operations; later lines are not read")]
    TooManyOperations,
    /// The history is too large.
    #[error("a history has at most {HISTORY_BYTES_MAX} bytes; later lines are not read")]
    TooLarge,
}

/// Shortens a text of the history to [`QUOTED_CHARS_MAX`] characters.
pub(super) fn short(json: &str) -> String {
    match json.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", json.get(..end).unwrap_or_default()),
        None => json.to_owned(),
    }
}

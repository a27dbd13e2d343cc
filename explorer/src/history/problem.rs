//! What can be wrong with the lines of a history, as one line for each problem.

use std::fmt;

use everett_input::units::write_duration_ns;

use super::limits::{HISTORY_BYTES_MAX, LINE_BYTES_MAX, OPERATIONS_MAX, PROBLEMS_MAX, QUOTED_CHARS_MAX};

/// All that is wrong with a history, in the order of its lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problems {
    /// The first of them, at most [`PROBLEMS_MAX`].
    pub first: Vec<Problem>,
    /// How many there are.
    pub count: u64,
}

impl Problems {
    pub(super) fn add(&mut self, problem: impl FnOnce() -> Problem) {
        self.count += 1;
        if self.first.len() < PROBLEMS_MAX {
            self.first.push(problem());
        }
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.first.iter().enumerate() {
            write!(f, "{}{problem}", if i == 0 { "" } else { "\n" })?;
        }
        match self.count - self.first.len() as u64 {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

/// One problem and its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, from {node} at {}: {what}", write_duration_ns(*vtime_ns))]
pub struct Problem {
    /// The line of the history, from 1.
    pub line: u64,
    /// The node that wrote it.
    pub node: String,
    /// When.
    pub vtime_ns: u64,
    /// What is wrong with it.
    pub what: Wrong,
}

/// What is wrong with a line. Names and values in it are quoted and shortened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Wrong {
    /// The line is too long.
    #[error("a line has at most {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    /// Not JSON, or a field twice.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// JSON, but something else.
    #[error("is no JSON object")]
    NotAnObject,
    /// A field that is needed.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A field of another type.
    #[error("{field} must be {expected}")]
    Type { field: &'static str, expected: &'static str },
    /// A number that cannot be told from its neighbours.
    #[error("{0} has a number that is not exact; write it as a text")]
    Inexact(&'static str),
    /// A type that does not exist.
    #[error("there is no type {0}; they are invoke, ok, fail and info")]
    UnknownType(String),
    /// An operation that the model does not have.
    #[error("a {model} has no operation {f}; it has {known}")]
    NoOperation { f: String, model: &'static str, known: String },
    /// An argument or a result that the operation does not have.
    #[error("the value of {f} must be {expected}")]
    Value { f: &'static str, expected: &'static str },
    /// A completion of nothing.
    #[error(
        "process {process} has no operation that could be over; it counts as one of unknown start and outcome"
    )]
    NotInvoked { process: String },
    /// An invocation while another operation is open.
    #[error(
        "process {process} starts another operation while that of line {line} is open, whose outcome is now unknown"
    )]
    StillOpen { process: String, line: u64 },
    /// A completion of something else.
    #[error("{field} is not that of the invocation in line {line}, whose outcome is now unknown")]
    NotThatInvoked { field: &'static str, line: u64 },
    /// The history has too many operations.
    #[error("a history has at most {OPERATIONS_MAX} operations; what comes from here on is not read")]
    TooManyOperations,
    /// The history is too large.
    #[error("a history has at most {HISTORY_BYTES_MAX} bytes; what comes from here on is not read")]
    TooLarge,
}

/// JSON of the history's, not too long.
pub(super) fn short(json: &str) -> String {
    match json.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", json.get(..end).unwrap_or_default()),
        None => json.to_owned(),
    }
}

//! Operations: what was asked, what was told, and when.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use everett_input::units::write_duration_ns;

use super::values::V;

/// What was asked for. `shape` says which model has which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Call {
    Read,
    Write(V),
    Cas(V, V),
    Delete,
    Enqueue(V),
    Dequeue,
    Add(V),
    Remove(V),
    Contains(V),
    Members,
    Acquire,
    Release,
}

impl Call {
    /// Its name, as histories have it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Call::Read | Call::Members => "read",
            Call::Write(_) => "write",
            Call::Cas(..) => "cas",
            Call::Delete => "delete",
            Call::Enqueue(_) => "enqueue",
            Call::Dequeue => "dequeue",
            Call::Add(_) => "add",
            Call::Remove(_) => "remove",
            Call::Contains(_) => "contains",
            Call::Acquire => "acquire",
            Call::Release => "release",
        }
    }

    /// Whether it can leave something behind.
    pub(super) fn changes(self) -> bool {
        !matches!(self, Call::Read | Call::Contains(_) | Call::Members)
    }
}

/// What was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// That it happened.
    Done,
    /// What was read or dequeued.
    Value(V),
    /// Whether the set has it.
    Holds(bool),
    /// What is in the set, in the order of numbers.
    Members(Arc<[V]>),
}

/// How an operation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// It may have taken effect at any time since it was invoked, or may still, or never.
    Unknown,
    /// It did not happen.
    Failed,
    /// It happened.
    Ok(Moment, Answer),
}

/// A place in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Moment {
    /// The line, from 1. Before all lines: 0.
    pub line: u64,
    /// When it was written.
    pub vtime_ns: u64,
}

/// An operation of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operation {
    /// By the history's number for it.
    pub(super) key: u32,
    /// By the history's number for it.
    pub(super) process: u32,
    pub(super) call: Call,
    pub(super) invoked: Moment,
    pub(super) ending: Ending,
}

impl Operation {
    /// When it was acknowledged.
    pub(super) fn completed(&self) -> Option<Moment> {
        match self.ending {
            Ending::Ok(moment, _) => Some(moment),
            Ending::Unknown | Ending::Failed => None,
        }
    }

    /// Its result, if it was acknowledged.
    pub(super) fn answer(&self) -> Option<&Answer> {
        match &self.ending {
            Ending::Ok(_, answer) => Some(answer),
            Ending::Unknown | Ending::Failed => None,
        }
    }

    pub(super) fn failed(&self) -> bool {
        self.ending == Ending::Failed
    }

    /// Whether it was acknowledged before the other was invoked.
    pub(super) fn precedes(&self, other: &Operation) -> bool {
        self.completed().is_some_and(|moment| moment.line < other.invoked.line)
    }
}

/// An operation in words, with all that tells it from others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Told {
    /// Its client, as JSON.
    pub process: String,
    /// The node of its client.
    pub node: String,
    /// The operation's name.
    pub f: &'static str,
    /// What was asked and told, such as `write of 5`. Long values are shortened.
    pub what: String,
    /// When it was invoked.
    pub invoked: Moment,
    /// When it was acknowledged, if it was.
    pub completed: Option<Moment>,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { process, node, what, invoked, completed, .. } = self;
        write!(f, "{what} by process {process} of {node} ({} to ", write_duration_ns(invoked.vtime_ns))?;
        match completed {
            Some(Moment { line, vtime_ns }) => {
                write!(f, "{}, lines {} and {line})", write_duration_ns(*vtime_ns), invoked.line)
            }
            None if invoked.line == 0 => f.write_str("an unknown end, never seen to start)"),
            None => write!(f, "an unknown end, line {})", invoked.line),
        }
    }
}

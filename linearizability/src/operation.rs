//! Operations: their calls, their results, and their times.

use std::fmt;
use std::sync::Arc;

use everett_input::units::write_duration_ns;

use super::values::{NULL, V};

/// Requested operation with its argument. `super::shape` lists the operations of each model.
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
    /// Returns the name of the operation in histories.
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

    /// Returns the value that the operation writes, adds or enqueues. For a delete, this value is null. `None` for all
    /// other operations.
    pub(super) fn leaves(self) -> Option<V> {
        match self {
            Call::Write(v) | Call::Cas(_, v) | Call::Enqueue(v) | Call::Add(v) => Some(v),
            Call::Delete => Some(NULL),
            _ => None,
        }
    }

    /// True if the operation can change the object.
    pub(super) fn changes(self) -> bool {
        !matches!(self, Call::Read | Call::Contains(_) | Call::Members)
    }
}

/// Result of an acknowledged operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The operation took effect, and has no result.
    Done,
    /// Value that was read or dequeued.
    Value(V),
    /// True if the set contains the element.
    Holds(bool),
    /// Elements of the set, in ascending order of their numbers. A `V` is the number of a distinct value.
    Members(Arc<[V]>),
}

/// Outcome of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// The outcome is unknown. The operation may take effect at any time after its invocation, or never.
    Unknown,
    /// The operation did not take effect.
    Failed,
    /// The operation took effect, with this result.
    Ok(Moment, Answer),
}

/// Position in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Number of the history's line, from 1. If an operation's invocation has no valid line, the number is 0: the
    /// operation may have started before all others.
    pub line: u64,
    /// Vtime at which the line was written, in nanoseconds.
    pub vtime_ns: u64,
}

/// Operation of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operation {
    /// Number of the key in the history.
    pub(super) key: u32,
    /// Number of the process in the history.
    pub(super) process: u32,
    pub(super) call: Call,
    pub(super) invoked: Moment,
    pub(super) ending: Ending,
}

impl Operation {
    /// Returns the position of the acknowledgement, or `None` if the operation was not acknowledged.
    pub(super) fn completed(&self) -> Option<Moment> {
        match self.ending {
            Ending::Ok(moment, _) => Some(moment),
            Ending::Unknown | Ending::Failed => None,
        }
    }

    /// Returns the result, or `None` if the operation was not acknowledged.
    pub(super) fn answer(&self) -> Option<&Answer> {
        match &self.ending {
            Ending::Ok(_, answer) => Some(answer),
            Ending::Unknown | Ending::Failed => None,
        }
    }

    pub(super) fn failed(&self) -> bool {
        self.ending == Ending::Failed
    }

    /// True if this operation was acknowledged before the other operation was invoked.
    pub(super) fn precedes(&self, other: &Operation) -> bool {
        self.completed().is_some_and(|moment| moment.line < other.invoked.line)
    }
}

/// Description of an operation, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Name of the client process, as JSON.
    pub process: String,
    /// Node of the client.
    pub node: String,
    /// Name of the operation.
    pub f: &'static str,
    /// Call and result, e.g. `write of 5`. Long values are shortened.
    pub what: String,
    /// Position of the invocation.
    pub invoked: Moment,
    /// Position of the acknowledgement. `None` if the operation was not acknowledged.
    pub completed: Option<Moment>,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Description { process, node, what, invoked, completed, .. } = self;
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

//! Acknowledged writes that are gone.
//!
//! A lost write is a violation of linearizability, too. It is reported separately because it matters most to users, is
//! found without a search, and can be explained without an order of operations.
//!
//! - `register`: a final read shows a value that an acknowledged write has replaced
//! - `set`: a final read does not show an element that was added
//! - `queue`: an element was never dequeued although the queue is empty, or was dequeued too often
//!
//! A read is final if it was invoked after all acknowledged operations that affect it had completed. A write that an
//! operation of unknown outcome can have replaced or removed is not lost.

mod queue;
mod register;
mod set;

use std::fmt;

use super::cause::{LossKind, ViolationGroups};
use super::error::short;
use super::evidence::write_key;
use super::limits::LOST_MAX;
use super::operation::{Description, Operation};
use super::reader::History;
use super::spec::ModelKind;

/// Acknowledged write that is gone, or element that was dequeued too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The key as JSON, shortened; `None` if the object has no keys.
    pub key: Option<String>,
    /// The acknowledged operation. For an element that was dequeued too often, the last dequeue of it.
    pub operation: Description,
    /// Proof of the loss.
    pub loss: Loss,
}

/// Proof that a write is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// A later read shows another value, which no operation since the write can have written.
    Replaced {
        /// The read.
        read: Description,
    },
    /// A later read does not show the element, which no operation since the add can have removed.
    Missing {
        /// The read.
        read: Description,
    },
    /// The queue is empty and the element was never dequeued.
    Stuck {
        /// The dequeue that found the queue empty.
        empty: Description,
        /// Number of elements that are missing in all.
        missing: u64,
        /// Number of missing elements that dequeues of unknown outcome may have taken.
        excused: u64,
    },
    /// The element was dequeued more often than it was enqueued.
    Twice {
        /// Number of times that the element was dequeued.
        dequeued: u64,
        /// Number of times that the element may have been enqueued.
        enqueued: u64,
    },
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lost { key, operation, loss } = self;
        write_key(f, key.as_deref())?;
        match loss {
            Loss::Replaced { read } => write!(f, "acknowledged {operation} is gone: later {read}"),
            Loss::Missing { read } => write!(f, "acknowledged {operation} is gone: not in later {read}"),
            Loss::Stuck { empty, missing, excused } => {
                write!(
                    f,
                    "acknowledged {operation} never came out, and later {empty} found the queue empty"
                )?;
                match excused {
                    0 => Ok(()),
                    _ => write!(
                        f,
                        " ({missing} are missing, dequeues of unknown outcome took at most {excused})"
                    ),
                }
            }
            Loss::Twice { dequeued, enqueued } => {
                write!(f, "{operation} is of what came out {dequeued} times and went in {enqueued} times")
            }
        }
    }
}

/// Finds the losses of a history, in the order of keys.
pub(super) fn find<'h>(history: &'h History, by_key: &[Vec<&Operation>]) -> Tally<'h> {
    let mut tally =
        Tally { history, lost: Vec::new(), count: 0, keys: Vec::new(), groups: ViolationGroups::new() };
    for operations in by_key {
        match history.spec.kind() {
            ModelKind::Register | ModelKind::Cas | ModelKind::Kv => register::find(operations, &mut tally),
            ModelKind::Set => set::find(operations, &mut tally),
            ModelKind::Queue => queue::find(operations, &mut tally),
            ModelKind::Lock => {}
        }
    }
    tally
}

/// Losses that were found so far.
pub(super) struct Tally<'h> {
    history: &'h History,
    /// The first losses, at most [`LOST_MAX`].
    pub(super) lost: Vec<Lost>,
    /// Number of all losses.
    pub(super) count: u64,
    /// Numbers of the keys with a loss, in ascending order.
    pub(super) keys: Vec<u32>,
    /// One loss for each cause.
    pub(super) groups: ViolationGroups<Lost>,
}

impl Tally<'_> {
    fn add(&mut self, kind: LossKind, operation: &Operation, loss: impl Fn(&History) -> Loss) {
        self.count += 1;
        if self.keys.last() != Some(&operation.key) {
            self.keys.push(operation.key);
        }
        let history = self.history;
        let lost = || Lost {
            key: history.key(operation.key).map(short),
            operation: history.describe(operation),
            loss: loss(history),
        };
        self.groups.add(kind.cause(history.spec.kind(), operation.call.name()), lost);
        if self.lost.len() < LOST_MAX {
            self.lost.push(lost());
        }
    }
}

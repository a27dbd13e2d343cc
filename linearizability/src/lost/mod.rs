//! Acknowledged writes that are lost.
//!
//! A lost write is also a violation of linearizability. Lost writes are reported separately, because they matter most
//! to users. Finding them needs no search, and they can be explained without an order of operations.
//!
//! - `register`: a final read shows a value that an acknowledged write had replaced
//! - `set`: a final read does not show an element that was added
//! - `queue`: an element was never dequeued although the queue is empty, or was dequeued too often
//!
//! A read is final if it was invoked after the end of all acknowledged operations that affect it. A write is not lost
//! if an operation of unknown outcome may have replaced or removed its value.

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

/// Acknowledged write that is lost, or dequeue of an element that was dequeued too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The key, as shortened JSON. `None` if the object has no keys.
    pub key: Option<String>,
    /// The acknowledged write. For an element that was dequeued too often, the element's last dequeue.
    pub operation: Description,
    /// Proof of the loss.
    pub loss: Loss,
}

/// Proof that a write is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// A later read shows another value, and no operation since the write can have written that value.
    Replaced {
        /// The read.
        read: Description,
    },
    /// A later read does not show the element, and no operation since the add can have removed the element.
    Missing {
        /// The read.
        read: Description,
    },
    /// The queue is empty, but the element was never dequeued.
    Stuck {
        /// The dequeue that found the queue empty.
        empty: Description,
        /// Total number of missing elements.
        missing: u64,
        /// Number of missing elements that dequeues of unknown outcome may have taken.
        excused: u64,
    },
    /// The element was dequeued more often than it was enqueued.
    Twice {
        /// Number of times that the element was dequeued.
        dequeued: u64,
        /// Maximum number of times that the element may have been enqueued.
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
                write!(
                    f,
                    "{operation}: this element came out {dequeued} times, but went in at most {enqueued} times"
                )
            }
        }
    }
}

/// Finds the losses in a history, in the order of keys.
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

/// Losses found so far.
pub(super) struct Tally<'h> {
    history: &'h History,
    /// First losses, at most [`LOST_MAX`].
    pub(super) lost: Vec<Lost>,
    /// Number of all losses.
    pub(super) count: u64,
    /// Numbers of the keys with a loss, in ascending order.
    pub(super) keys: Vec<u32>,
    /// One group of losses for each cause.
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

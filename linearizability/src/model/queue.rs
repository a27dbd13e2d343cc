//! Model of a queue, first in, first out.
//!
//! An open dequeue, i.e. one of unknown outcome, removes the first element, whatever its value. The dequeue can be
//! postponed past enqueues until just before the next acknowledged dequeue.
//!
//! An open enqueue cannot be postponed, because its place among other enqueues affects later dequeues. The enqueue can
//! be omitted if no acknowledged dequeue returned its value. In that case only an open dequeue can take its element,
//! and this dequeue can be omitted as well.

use std::collections::{BTreeSet, VecDeque};

use super::{Model, Op, Undo};
use crate::operation::{Answer, Call};
use crate::reader::History;
use crate::values::{NULL, V};

pub(super) struct Queue {
    /// Elements, oldest first.
    items: VecDeque<V>,
    /// Values that acknowledged dequeues returned.
    seen: BTreeSet<V>,
}

impl Queue {
    pub(super) fn new(done: &[Op<'_>]) -> Queue {
        let seen = done.iter().filter_map(|op| match op.answer() {
            Some(Answer::Value(v)) => Some(*v),
            _ => None,
        });
        Queue { items: VecDeque::new(), seen: seen.collect() }
    }
}

impl Model for Queue {
    // An open operation helps an acknowledged operation if it may enable the acknowledged operation (see `helps`). In a
    // queue, only open dequeues help. All open dequeues have the same effect, so the search needs to try only one.
    fn first_help_does(&self) -> bool {
        true
    }

    fn apply(&mut self, op: &Op<'_>) -> Option<Undo> {
        match (op.call(), op.answer()) {
            (Call::Enqueue(v), _) => {
                self.items.push_back(v);
                Some(Undo::Pushed)
            }
            (Call::Dequeue, None) => self.items.pop_front().map(Undo::Popped),
            (Call::Dequeue, Some(Answer::Value(NULL))) => self.items.is_empty().then_some(Undo::Nothing),
            (Call::Dequeue, Some(Answer::Value(v))) if self.items.front() == Some(v) => {
                self.items.pop_front().map(Undo::Popped)
            }
            _ => None,
        }
    }

    fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Pushed => drop(self.items.pop_back()),
            Undo::Popped(v) => self.items.push_front(v),
            _ => {}
        }
    }

    fn digest(&self, words: &mut Vec<u32>) {
        words.extend(self.items.iter().map(|v| v.0));
    }

    fn helps(&self, open: &Op<'_>, target: &Op<'_>) -> bool {
        open.call() == Call::Dequeue && target.call() == Call::Dequeue && !self.items.is_empty()
    }

    fn eager(&self, open: &Op<'_>) -> bool {
        matches!(open.call(), Call::Enqueue(v) if self.seen.contains(&v))
    }

    fn describe(&self, op: Option<&Op<'_>>, history: &History) -> String {
        match (op, self.items.front()) {
            (_, None) => "it was empty".to_owned(),
            (Some(_), Some(v)) => format!("{} was first in it", history.value(*v)),
            (None, Some(_)) => format!("it held {}", history.list(self.items.iter().copied())),
        }
    }
}

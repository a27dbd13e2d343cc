//! A queue.
//!
//! An open dequeue takes the first element, whatever it is. It can be put off past enqueues until right before the
//! next acknowledged dequeue. An open enqueue cannot be put off: its place among other enqueues affects later
//! dequeues. If no acknowledged dequeue returned its value, it need not happen at all: only an open dequeue can take
//! the element out again, and this dequeue need not happen either.

use std::collections::{BTreeSet, VecDeque};

use super::{Model, Op};
use crate::operation::{Answer, Call};
use crate::reader::History;
use crate::values::{NULL, V};

pub(crate) struct Queue {
    /// Values that acknowledged dequeues returned.
    seen: BTreeSet<V>,
}

impl Queue {
    pub(crate) fn of(ops: &[Op<'_>]) -> Queue {
        let seen = ops.iter().filter_map(|op| match op.answer() {
            Some(Answer::Value(v)) => Some(*v),
            _ => None,
        });
        Queue { seen: seen.collect() }
    }
}

pub(crate) enum Undo {
    Nothing,
    Pushed,
    Popped(V),
}

impl Model for Queue {
    type State = VecDeque<V>;
    type Undo = Undo;

    // Only dequeues help, and all dequeues are alike.
    const FIRST_HELP_DOES: bool = true;

    fn start(&self) -> VecDeque<V> {
        VecDeque::new()
    }

    fn apply(&self, state: &mut VecDeque<V>, op: &Op<'_>) -> Option<Undo> {
        match (op.call(), op.answer()) {
            (Call::Enqueue(v), _) => {
                state.push_back(v);
                Some(Undo::Pushed)
            }
            (Call::Dequeue, None) => state.pop_front().map(Undo::Popped),
            (Call::Dequeue, Some(Answer::Value(NULL))) => state.is_empty().then_some(Undo::Nothing),
            (Call::Dequeue, Some(Answer::Value(v))) if state.front() == Some(v) => {
                state.pop_front().map(Undo::Popped)
            }
            _ => None,
        }
    }

    fn undo(&self, state: &mut VecDeque<V>, undo: Undo) {
        match undo {
            Undo::Nothing => {}
            Undo::Pushed => drop(state.pop_back()),
            Undo::Popped(v) => state.push_front(v),
        }
    }

    fn digest(&self, state: &VecDeque<V>, words: &mut Vec<u32>) {
        words.extend(state.iter().map(|v| v.0));
    }

    fn helps(&self, state: &VecDeque<V>, open: &Op<'_>, target: &Op<'_>) -> bool {
        open.call() == Call::Dequeue && target.call() == Call::Dequeue && !state.is_empty()
    }

    fn eager(&self, open: &Op<'_>) -> bool {
        matches!(open.call(), Call::Enqueue(v) if self.seen.contains(&v))
    }

    fn describe(&self, state: &VecDeque<V>, op: Option<&Op<'_>>, history: &History) -> String {
        match (op, state.front()) {
            (_, None) => "it was empty".to_owned(),
            (Some(_), Some(v)) => format!("{} was first in it", history.value(*v)),
            (None, Some(_)) => format!("it held {}", history.list(state.iter().copied())),
        }
    }
}

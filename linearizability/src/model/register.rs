//! A register: `register`, `cas`, and a key of `kv`.
//!
//! Open operations can be put off. Right before an acknowledged write or delete, their effect is overwritten, so they
//! can be left out. Right before an acknowledged read or cas, only the value that the last one writes matters, so
//! those before the last open write can be left out.

use std::collections::BTreeSet;

use super::{Model, Op};
use crate::operation::{Answer, Call};
use crate::reader::History;
use crate::values::{NULL, V};

pub(crate) struct Register {
    initial: V,
    /// Values that an open cas can replace with another value.
    chained: BTreeSet<V>,
}

impl Register {
    pub(crate) fn of(initial: V, ops: &[Op<'_>]) -> Register {
        let chained = ops.iter().filter(|op| op.open).filter_map(|op| match op.call() {
            Call::Cas(old, _) => Some(old),
            _ => None,
        });
        Register { initial, chained: chained.collect() }
    }
}

impl Model for Register {
    type State = V;
    type Undo = V;

    // A write and a cas may lead to the same value, and one of them may be more useful later.
    const FIRST_HELP_DOES: bool = false;

    fn start(&self) -> V {
        self.initial
    }

    fn apply(&self, state: &mut V, op: &Op<'_>) -> Option<V> {
        let before = *state;
        match (op.call(), op.answer()) {
            (Call::Read, Some(Answer::Value(v))) if *v == before => {}
            (Call::Write(v), _) => *state = v,
            (Call::Delete, _) => *state = NULL,
            (Call::Cas(old, new), _) if old == before => *state = new,
            _ => return None,
        }
        Some(before)
    }

    fn undo(&self, state: &mut V, undo: V) {
        *state = undo;
    }

    fn digest(&self, state: &V, words: &mut Vec<u32>) {
        words.push(state.0);
    }

    fn helps(&self, state: &V, open: &Op<'_>, target: &Op<'_>) -> bool {
        let needed = match (target.call(), target.answer()) {
            (Call::Read, Some(Answer::Value(v))) => *v,
            (Call::Cas(old, _), _) => old,
            _ => return false,
        };
        let leads = |v: V| v == needed || self.chained.contains(&v);
        match open.call() {
            Call::Write(v) => leads(v),
            Call::Delete => leads(NULL),
            Call::Cas(old, new) => old == *state && leads(new),
            _ => false,
        }
    }

    fn eager(&self, _: &Op<'_>) -> bool {
        false
    }

    fn describe(&self, state: &V, _: Option<&Op<'_>>, history: &History) -> String {
        format!("it held {}", history.value(*state))
    }
}

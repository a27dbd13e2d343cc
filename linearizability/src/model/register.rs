//! Model of a register. It checks histories of kind `register` and `cas`, and each key of a history of kind `kv`.
//!
//! An open operation (one without an acknowledged result) can take effect at any later time, so the search can postpone
//! it. An acknowledged write or delete overwrites the effect of open operations, so they can be omitted before it.
//! If the search places several open operations before an acknowledged read or cas, only the last write among them
//! matters, so the open operations before this write can be omitted, too.

use std::collections::BTreeSet;

use super::{Model, Op, Undo};
use crate::operation::{Answer, Call};
use crate::reader::History;
use crate::values::{NULL, V};

pub(super) struct Register {
    held: V,
    /// Values that an open cas can replace with another value.
    chained: BTreeSet<V>,
}

impl Register {
    pub(super) fn new(initial: V, open: &[Op<'_>]) -> Register {
        let chained = open.iter().filter(|op| op.open).filter_map(|op| match op.call() {
            Call::Cas(old, _) => Some(old),
            _ => None,
        });
        Register { held: initial, chained: chained.collect() }
    }
}

impl Model for Register {
    // The search must try each open operation that helps, not only the first. For example, an open write and an open
    // cas may produce the same value. The search cannot know which of them it will need later, so it tries both.
    fn first_help_does(&self) -> bool {
        false
    }

    fn apply(&mut self, op: &Op<'_>) -> Option<Undo> {
        let before = self.held;
        match (op.call(), op.answer()) {
            (Call::Read, Some(Answer::Value(v))) if *v == before => {}
            (Call::Write(v), _) => self.held = v,
            (Call::Delete, _) => self.held = NULL,
            (Call::Cas(old, new), _) if old == before => self.held = new,
            _ => return None,
        }
        Some(Undo::Held(before))
    }

    fn undo(&mut self, undo: Undo) {
        if let Undo::Held(before) = undo {
            self.held = before;
        }
    }

    fn digest(&self, words: &mut Vec<u32>) {
        words.push(self.held.0);
    }

    fn helps(&self, open: &Op<'_>, target: &Op<'_>) -> bool {
        let needed = match (target.call(), target.answer()) {
            (Call::Read, Some(Answer::Value(v))) => *v,
            (Call::Cas(old, _), _) => old,
            _ => return false,
        };
        let leads = |v: V| v == needed || self.chained.contains(&v);
        match open.call() {
            Call::Write(v) => leads(v),
            Call::Delete => leads(NULL),
            Call::Cas(old, new) => old == self.held && leads(new),
            _ => false,
        }
    }

    fn describe(&self, _: Option<&Op<'_>>, history: &History) -> String {
        format!("it held {}", history.value(self.held))
    }
}

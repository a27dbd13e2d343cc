//! Model of a set.
//!
//! An acknowledged add or remove can happen whether or not the element is in the set. Open adds and removes (of unknown
//! outcome) can be postponed until just before the next acknowledged operation on the element. Before a `contains` or a
//! read, only the element's last open operation matters. Before an acknowledged add or remove, none of the element's
//! open operations matters.

use std::collections::BTreeSet;

use super::{Model, Op, Undo};
use crate::operation::{Answer, Call};
use crate::reader::History;
use crate::values::V;

#[derive(Default)]
pub(super) struct Set {
    items: BTreeSet<V>,
}

impl Model for Set {
    // The search needs to try only the first open operation that helps. Each element by which the set differs from the
    // wanted result needs one open operation. All of these operations are needed, and their order does not matter.
    fn first_help_does(&self) -> bool {
        true
    }

    fn apply(&mut self, op: &Op<'_>) -> Option<Undo> {
        let items = &mut self.items;
        match (op.call(), op.answer()) {
            (Call::Add(v), _) => Some(if items.insert(v) { Undo::Added(v) } else { Undo::Nothing }),
            (Call::Remove(v), _) => Some(if items.remove(&v) { Undo::Removed(v) } else { Undo::Nothing }),
            (Call::Contains(v), Some(Answer::Holds(holds))) if items.contains(&v) == *holds => {
                Some(Undo::Nothing)
            }
            (Call::Members, Some(Answer::Members(members))) => {
                (items.len() == members.len() && items.iter().eq(members.iter())).then_some(Undo::Nothing)
            }
            _ => None,
        }
    }

    fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Added(v) => drop(self.items.remove(&v)),
            Undo::Removed(v) => drop(self.items.insert(v)),
            _ => {}
        }
    }

    fn digest(&self, words: &mut Vec<u32>) {
        words.extend(self.items.iter().map(|v| v.0));
    }

    fn helps(&self, open: &Op<'_>, target: &Op<'_>) -> bool {
        let wanted = |v: &V| match (target.call(), target.answer()) {
            (Call::Contains(of), Some(Answer::Holds(holds))) if of == *v => Some(*holds),
            (Call::Members, Some(Answer::Members(members))) => Some(members.binary_search(v).is_ok()),
            _ => None,
        };
        match open.call() {
            Call::Add(v) => !self.items.contains(&v) && wanted(&v) == Some(true),
            Call::Remove(v) => self.items.contains(&v) && wanted(&v) == Some(false),
            _ => false,
        }
    }

    fn describe(&self, op: Option<&Op<'_>>, history: &History) -> String {
        match op.map(|op| (op.call(), op.answer())) {
            Some((Call::Contains(v), _)) => {
                format!(
                    "it {} {}",
                    if self.items.contains(&v) { "held" } else { "did not hold" },
                    history.value(v)
                )
            }
            // Sets can be large, so only the difference is described.
            Some((Call::Members, Some(Answer::Members(members)))) => {
                let missing = self.items.iter().copied().filter(|v| members.binary_search(v).is_err());
                let foreign = members.iter().copied().filter(|v| !self.items.contains(v));
                match (history.list(missing).as_str(), history.list(foreign).as_str()) {
                    (missing, "[]") => format!("it held {missing} as well"),
                    ("[]", foreign) => format!("it did not hold {foreign}"),
                    (missing, foreign) => format!("it held {missing} as well and did not hold {foreign}"),
                }
            }
            _ => format!("it held {}", history.list(self.items.iter().copied())),
        }
    }
}

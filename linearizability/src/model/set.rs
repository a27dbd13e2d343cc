//! A set.
//!
//! An acknowledged add or remove can happen whether or not the element is in the set. Open ones can be put off until
//! right before the next acknowledged operation on the element. Before a contains or read, only the last of the
//! element's open operations matters; before an add or remove of the element, none does.

use std::collections::BTreeSet;

use super::{Model, Op};
use crate::operation::{Answer, Call};
use crate::reader::History;
use crate::values::V;

pub(crate) struct Set;

pub(crate) enum Undo {
    Nothing,
    Added(V),
    Removed(V),
}

impl Model for Set {
    type State = BTreeSet<V>;
    type Undo = Undo;

    // Each element that differs needs one open operation. All of these operations are needed in any case, and their
    // order does not matter.
    const FIRST_HELP_DOES: bool = true;

    fn start(&self) -> BTreeSet<V> {
        BTreeSet::new()
    }

    fn apply(&self, state: &mut BTreeSet<V>, op: &Op<'_>) -> Option<Undo> {
        match (op.call(), op.answer()) {
            (Call::Add(v), _) => Some(if state.insert(v) { Undo::Added(v) } else { Undo::Nothing }),
            (Call::Remove(v), _) => Some(if state.remove(&v) { Undo::Removed(v) } else { Undo::Nothing }),
            (Call::Contains(v), Some(Answer::Holds(holds))) if state.contains(&v) == *holds => {
                Some(Undo::Nothing)
            }
            (Call::Members, Some(Answer::Members(members))) => {
                (state.len() == members.len() && state.iter().eq(members.iter())).then_some(Undo::Nothing)
            }
            _ => None,
        }
    }

    fn undo(&self, state: &mut BTreeSet<V>, undo: Undo) {
        match undo {
            Undo::Nothing => {}
            Undo::Added(v) => drop(state.remove(&v)),
            Undo::Removed(v) => drop(state.insert(v)),
        }
    }

    fn digest(&self, state: &BTreeSet<V>, words: &mut Vec<u32>) {
        words.extend(state.iter().map(|v| v.0));
    }

    fn helps(&self, state: &BTreeSet<V>, open: &Op<'_>, target: &Op<'_>) -> bool {
        let wanted = |v: &V| match (target.call(), target.answer()) {
            (Call::Contains(of), Some(Answer::Holds(holds))) if of == *v => Some(*holds),
            (Call::Members, Some(Answer::Members(members))) => Some(members.binary_search(v).is_ok()),
            _ => None,
        };
        match open.call() {
            Call::Add(v) => !state.contains(&v) && wanted(&v) == Some(true),
            Call::Remove(v) => state.contains(&v) && wanted(&v) == Some(false),
            _ => false,
        }
    }

    fn eager(&self, _: &Op<'_>) -> bool {
        false
    }

    fn describe(&self, state: &BTreeSet<V>, op: Option<&Op<'_>>, history: &History) -> String {
        match op.map(|op| (op.call(), op.answer())) {
            Some((Call::Contains(v), _)) => {
                format!(
                    "it {} {}",
                    if state.contains(&v) { "held" } else { "did not hold" },
                    history.value(v)
                )
            }
            // Sets are long, so only the difference is reported.
            Some((Call::Members, Some(Answer::Members(members)))) => {
                let missing = state.iter().copied().filter(|v| members.binary_search(v).is_err());
                let foreign = members.iter().copied().filter(|v| !state.contains(v));
                match (history.list(missing).as_str(), history.list(foreign).as_str()) {
                    (missing, "[]") => format!("it held {missing} as well"),
                    ("[]", foreign) => format!("it did not hold {foreign}"),
                    (missing, foreign) => format!("it held {missing} as well and did not hold {foreign}"),
                }
            }
            _ => format!("it held {}", history.list(state.iter().copied())),
        }
    }
}

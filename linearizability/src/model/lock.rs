//! A lock.
//!
//! While a process holds the lock, only its release can happen; while the lock is free, only an acquire. So open
//! operations can be put off: an open acquire until right before its process's release, an open release until right
//! before the next acquire.

use super::{Model, Op};
use crate::operation::Call;
use crate::reader::History;

pub(crate) struct Lock;

impl Model for Lock {
    /// The process that holds the lock.
    type State = Option<u32>;
    type Undo = Option<u32>;

    // In each state, the operations of exactly one process help.
    const FIRST_HELP_DOES: bool = true;

    fn start(&self) -> Option<u32> {
        None
    }

    fn apply(&self, state: &mut Option<u32>, op: &Op<'_>) -> Option<Option<u32>> {
        let process = Some(op.operation.process);
        let before = *state;
        match op.call() {
            Call::Acquire if before.is_none() => *state = process,
            Call::Release if before == process => *state = None,
            _ => return None,
        }
        Some(before)
    }

    fn undo(&self, state: &mut Option<u32>, undo: Option<u32>) {
        *state = undo;
    }

    fn digest(&self, state: &Option<u32>, words: &mut Vec<u32>) {
        words.extend(*state);
    }

    fn helps(&self, state: &Option<u32>, open: &Op<'_>, target: &Op<'_>) -> bool {
        match (state, open.call()) {
            (Some(holder), Call::Release) => open.operation.process == *holder,
            (None, Call::Acquire) => {
                target.call() == Call::Release && open.operation.process == target.operation.process
            }
            _ => false,
        }
    }

    fn eager(&self, _: &Op<'_>) -> bool {
        false
    }

    fn describe(&self, state: &Option<u32>, _: Option<&Op<'_>>, history: &History) -> String {
        match state {
            Some(process) => format!("{} held it", history.process(*process)),
            None => "it was free".to_owned(),
        }
    }
}

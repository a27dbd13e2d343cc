//! Model of a lock.
//!
//! While a process holds the lock, only its release can happen. While the lock is free, only an acquire can happen.
//! Open operations (operations of unknown outcome) can therefore be postponed: an open acquire until just before the
//! same process's release, and an open release until just before the next acquire.

use super::{Model, Op, Undo};
use crate::operation::Call;
use crate::reader::History;

#[derive(Default)]
pub(super) struct Lock {
    holder: Option<u32>,
}

impl Model for Lock {
    // In each state, only the open operations of one process can enable a given acknowledged operation. These open
    // operations have the same effect, so the search needs to try only the first one.
    fn first_help_does(&self) -> bool {
        true
    }

    fn apply(&mut self, op: &Op<'_>) -> Option<Undo> {
        let process = Some(op.operation.process);
        let before = self.holder;
        match op.call() {
            Call::Acquire if before.is_none() => self.holder = process,
            Call::Release if before == process => self.holder = None,
            _ => return None,
        }
        Some(Undo::Holder(before))
    }

    fn undo(&mut self, undo: Undo) {
        if let Undo::Holder(before) = undo {
            self.holder = before;
        }
    }

    fn digest(&self, words: &mut Vec<u32>) {
        words.extend(self.holder);
    }

    fn helps(&self, open: &Op<'_>, target: &Op<'_>) -> bool {
        match (self.holder, open.call()) {
            (Some(holder), Call::Release) => open.operation.process == holder,
            (None, Call::Acquire) => {
                target.call() == Call::Release && open.operation.process == target.operation.process
            }
            _ => false,
        }
    }

    fn describe(&self, _: Option<&Op<'_>>, history: &History) -> String {
        match self.holder {
            Some(process) => format!("{} held it", history.process(process)),
            None => "it was free".to_owned(),
        }
    }
}

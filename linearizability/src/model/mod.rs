//! Models of the objects that servers implement.
//!
//! - `register`, `queue`, `set`, `lock`: effects of the operations
//!
//! **Open operations.** An operation of unknown outcome is called open here. It may take effect anywhere after its
//! invocation, or never. Trying every position makes searches long, and is mostly needless: an open operation can be
//! put off until right before an acknowledged one that could not happen without it, and left out if there is no such
//! operation. [`Model::helps`] says which open operations to try for which acknowledged one; each model explains why
//! putting off is sound. Operations that must keep their place among others cannot be put off; [`Model::eager`] names
//! them.

mod lock;
mod queue;
mod register;
mod set;

use super::operation::{Answer, Call, Operation};
use super::reader::History;
use super::spec::ModelKind;
use super::values::V;
use lock::Lock;
use queue::Queue;
use register::Register;
use set::Set;

/// An operation from the view of a search. An operation that completed after the search's end counts as open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op<'h> {
    pub(super) operation: &'h Operation,
    pub(super) open: bool,
}

impl<'h> Op<'h> {
    pub(super) fn call(&self) -> Call {
        self.operation.call
    }

    /// Returns the result; `None` for an open operation.
    pub(super) fn answer(&self) -> Option<&'h Answer> {
        if self.open { None } else { self.operation.answer() }
    }
}

/// Returns the object of a history's model in its initial state. The operations are all that may be applied to it.
pub(super) fn object(history: &History, done: &[Op<'_>], open: &[Op<'_>]) -> Box<dyn Model> {
    match history.spec.kind() {
        ModelKind::Register | ModelKind::Cas | ModelKind::Kv => {
            Box::new(Register::new(history.initial, open))
        }
        ModelKind::Queue => Box::new(Queue::new(done)),
        ModelKind::Set => Box::new(Set::default()),
        ModelKind::Lock => Box::new(Lock::default()),
    }
}

/// An object that operations change in place. Each change can be undone.
pub(super) trait Model {
    /// True if it suffices to try the first of several open operations that help.
    fn first_help_does(&self) -> bool;

    /// Applies an operation. Returns `None` if the operation cannot happen in this state with its result. May return
    /// `None` for an open operation that would have no effect.
    fn apply(&mut self, op: &Op<'_>) -> Option<Undo>;

    /// Undoes the last operation that was applied.
    fn undo(&mut self, undo: Undo);

    /// Appends words that identify the state uniquely.
    fn digest(&self, words: &mut Vec<u32>);

    /// True if the open operation may enable `target`, which cannot happen in this state.
    fn helps(&self, open: &Op<'_>, target: &Op<'_>) -> bool;

    /// True if an open operation may have to happen before an acknowledged operation needs it.
    fn eager(&self, _open: &Op<'_>) -> bool {
        false
    }

    /// Returns the state as text, limited to the part that concerns the operation.
    fn describe(&self, op: Option<&Op<'_>>, history: &History) -> String;
}

/// The change that an operation made to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undo {
    /// Nothing changed.
    Nothing,
    /// The register held this value before.
    Held(V),
    /// This process held the lock before, or none.
    Holder(Option<u32>),
    /// An element was added at the end of the queue.
    Pushed,
    /// This element was taken from the front of the queue.
    Popped(V),
    /// This element was added to the set.
    Added(V),
    /// This element was removed from the set.
    Removed(V),
}

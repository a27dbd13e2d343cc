//! Models of the objects that servers implement.
//!
//! - `register`, `queue`, `set`, `lock`: the effects of operations
//!
//! **Open operations.** An operation of unknown outcome is called open. It may take effect at any time after its
//! invocation, or never. To try every position would make searches long, and is mostly unnecessary. An open operation
//! can usually be postponed until just before an acknowledged operation that needs it. If no operation needs it, it can
//! be omitted.
//!
//! [`Model::helps`] says which open operations to try before which acknowledged operation. Each model explains why it
//! may postpone operations. An open operation whose order among other operations matters cannot be postponed;
//! [`Model::eager`] returns true for it.

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

/// Operation as a search sees it. An operation that completes after the end of the searched prefix is open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op<'h> {
    pub(super) operation: &'h Operation,
    pub(super) open: bool,
}

impl<'h> Op<'h> {
    pub(super) fn call(&self) -> Call {
        self.operation.call
    }

    /// Returns the result, or `None` for an open operation.
    pub(super) fn answer(&self) -> Option<&'h Answer> {
        if self.open { None } else { self.operation.answer() }
    }
}

/// Returns the object of a history's model in its initial state. Only operations in `done` and `open` may be applied to
/// it.
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

/// Object that operations change in place. Each change can be undone.
pub(super) trait Model {
    /// True if the search needs to try only the first of several open operations that help an acknowledged one.
    fn first_help_does(&self) -> bool;

    /// Applies an operation. Returns `None` if the operation cannot happen in this state with its result. May also
    /// return `None` for an open operation without an effect.
    fn apply(&mut self, op: &Op<'_>) -> Option<Undo>;

    /// Undoes the operation that was applied last.
    fn undo(&mut self, undo: Undo);

    /// Appends words that identify the state uniquely.
    fn digest(&self, words: &mut Vec<u32>);

    /// True if the open operation may enable `target`, which cannot happen in this state.
    fn helps(&self, open: &Op<'_>, target: &Op<'_>) -> bool;

    /// True if the search cannot postpone this open operation until an acknowledged operation needs it.
    fn eager(&self, _open: &Op<'_>) -> bool {
        false
    }

    /// Returns the state as text. With `op`, the text has only the part that concerns this operation.
    fn describe(&self, op: Option<&Op<'_>>, history: &History) -> String;
}

/// Change that an operation made to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undo {
    /// Nothing changed.
    Nothing,
    /// The register held this value before.
    Held(V),
    /// This process held the lock before. `None` if the lock was free.
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

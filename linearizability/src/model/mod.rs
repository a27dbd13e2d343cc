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

pub(super) use lock::Lock;
pub(super) use queue::Queue;
pub(super) use register::Register;
pub(super) use set::Set;

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

/// An object that operations change in place. Each change can be undone.
pub(super) trait Model {
    type State: Clone;
    type Undo;

    /// True if it suffices to try the first of several open operations that help.
    const FIRST_HELP_DOES: bool;

    fn start(&self) -> Self::State;

    /// Applies an operation. Returns `None` if the operation cannot happen in this state with its result. May return
    /// `None` for an open operation that would have no effect.
    fn apply(&self, state: &mut Self::State, op: &Op<'_>) -> Option<Self::Undo>;

    /// Undoes the last operation that was applied.
    fn undo(&self, state: &mut Self::State, undo: Self::Undo);

    /// Appends words that identify the state uniquely.
    fn digest(&self, state: &Self::State, words: &mut Vec<u32>);

    /// True if the open operation may enable `target`, which cannot happen in this state.
    fn helps(&self, state: &Self::State, open: &Op<'_>, target: &Op<'_>) -> bool;

    /// True if an open operation may have to happen before an acknowledged operation needs it.
    fn eager(&self, open: &Op<'_>) -> bool;

    /// Returns the state as text, limited to the part that concerns the operation.
    fn describe(&self, state: &Self::State, op: Option<&Op<'_>>, history: &History) -> String;
}

//! The objects that servers stand for.
//!
//! - `kind`: their names and what they start with
//! - `register`, `queue`, `set`, `lock`: what each operation does
//!
//! **About operations of unknown outcome.** One that was never acknowledged may be put anywhere behind its invocation, or
//! nowhere. Trying all of that is what makes searches long, and mostly needless: such an operation can be put off until
//! right before an acknowledged one that could not happen without it, and left out if there is none. [`Model::helps`] says
//! which are worth a try for which; each model says why putting off is right. The exception is what must keep its place
//! among others, which [`Model::eager`] says.

mod kind;
mod lock;
mod queue;
mod register;
mod set;

use super::operation::{Answer, Call, Operation};
use super::reader::History;

pub use kind::{ModelKind, NoInitial, NoModel, Spec};
pub(super) use lock::Lock;
pub(super) use queue::Queue;
pub(super) use register::Register;
pub(super) use set::Set;

/// An operation as a search has it: what completed behind the search's end is open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op<'h> {
    pub(super) operation: &'h Operation,
    pub(super) open: bool,
}

impl<'h> Op<'h> {
    pub(super) fn call(&self) -> Call {
        self.operation.call
    }

    /// What was told; `None` of what is open.
    pub(super) fn answer(&self) -> Option<&'h Answer> {
        if self.open { None } else { self.operation.answer() }
    }
}

/// An object, changed in place and back.
pub(super) trait Model {
    type State: Clone;
    type Undo;

    /// Of the helpful operations, the first that helps is as good as any.
    const FIRST_HELP_DOES: bool;

    fn start(&self) -> Self::State;

    /// Let an operation happen. `None` if it cannot happen as it was told; of an open one: if it would do nothing.
    fn apply(&self, state: &mut Self::State, op: &Op<'_>) -> Option<Self::Undo>;

    /// Take back the last that was applied.
    fn undo(&self, state: &mut Self::State, undo: Self::Undo);

    /// The state in words that tell it from all others.
    fn digest(&self, state: &Self::State, words: &mut Vec<u32>);

    /// Whether an open operation may be what `target`, which cannot happen in this state, is in need of.
    fn helps(&self, state: &Self::State, open: &Op<'_>, target: &Op<'_>) -> bool;

    /// Whether an open operation may have to happen before anything is in need of it.
    fn eager(&self, open: &Op<'_>) -> bool;

    /// What the state is, as far as the operation has to do with it.
    fn told(&self, state: &Self::State, op: Option<&Op<'_>>, history: &History) -> String;
}

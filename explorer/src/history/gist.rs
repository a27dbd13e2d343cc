//! What of a violation tells one cause from another: its kind, the model, and the operation and its role. Values, lists, counts,
//! keys, processes and times are left out, since one cause shows in other ones on each timeline.

use std::collections::BTreeMap;

use serde::Serialize;

use super::evidence::Evidence;
use super::model::ModelKind;
use super::problem::Wrong;

/// What is told of a report for one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gist<T> {
    /// The cause, as far as that can be told from what was seen: equal for equal causes.
    pub cause: String,
    /// What was found with this cause first.
    pub first: T,
    /// How much was found with this cause.
    pub count: u64,
}

/// Gists by cause. There are few causes, whatever a history has.
#[derive(Debug)]
pub(super) struct Gists<T>(BTreeMap<String, Gist<T>>);

impl<T> Gists<T> {
    pub(super) fn new() -> Gists<T> {
        Gists(BTreeMap::new())
    }

    /// Count one more of a cause; `value` makes it if it is the first.
    pub(super) fn add(&mut self, cause: String, value: impl FnOnce() -> T) {
        if let Some(gist) = self.0.get_mut(&cause) {
            gist.count += 1;
        } else {
            self.0.insert(cause.clone(), Gist { cause, first: value(), count: 1 });
        }
    }

    /// All of them, by the names of causes: an order by keys or elements would depend on values.
    pub(super) fn all(self) -> Vec<Gist<T>> {
        self.0.into_values().collect()
    }
}

/// The violations to tell: one for each cause.
#[derive(Debug)]
pub(super) struct Violations {
    certain: Gists<Evidence>,
    uncertain: Gists<Evidence>,
}

impl Violations {
    pub(super) fn new() -> Violations {
        Violations { certain: Gists::new(), uncertain: Gists::new() }
    }

    pub(super) fn add(&mut self, model: ModelKind, evidence: &Evidence) {
        let gists = if evidence.earliest { &mut self.certain } else { &mut self.uncertain };
        gists.add(evidence.cause(model), || evidence.clone());
    }

    /// One for each cause that is certain. Where it is not known that an operation is the first that cannot be, it is where the search
    /// got stuck, so one cause shows in several operations: if no cause is certain, the first of these by name is told.
    pub(super) fn all(self) -> Vec<Gist<Evidence>> {
        let mut told = self.certain.all();
        if told.is_empty() {
            told = self.uncertain.all();
            told.truncate(1);
        }
        told
    }
}

/// What kind of loss something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LossKind {
    /// It was acknowledged, and is not there.
    Gone,
    /// It came and never went in.
    NeverIn,
    /// It came more often than it went in.
    TooOften,
}

impl LossKind {
    /// The cause of a loss of this kind, of an operation with this name.
    pub(super) fn cause(self, model: ModelKind, f: &str) -> String {
        match self {
            LossKind::Gone => format!("{model}: acknowledged {f} is gone"),
            LossKind::NeverIn => format!("{model}: {f} of what never went in"),
            LossKind::TooOften => format!("{model}: {f} more often than it went in"),
        }
    }
}

impl Evidence {
    fn cause(&self, model: ModelKind) -> String {
        let role = if self.foreign { " of what nothing left behind" } else { "" };
        format!("{model}: {}{role} cannot be", self.operation.f)
    }
}

impl Wrong {
    /// Its cause: what is wrong, without names, values and numbers of lines.
    #[must_use]
    pub fn cause(&self) -> String {
        match self {
            // Where a line was cut off decides what the JSON reader misses in it.
            Wrong::NotJson(_) => "not JSON".to_owned(),
            Wrong::UnknownType(_) => "unknown type".to_owned(),
            Wrong::NoOperation { model, .. } => format!("unknown operation of a {model}"),
            Wrong::NotInvoked { .. } => "completion without an invocation".to_owned(),
            Wrong::StillOpen { .. } => "invocation while another one is open".to_owned(),
            Wrong::NotThatInvoked { field, .. } => format!("{field} is not that of the invocation"),
            Wrong::LineTooLong
            | Wrong::NotAnObject
            | Wrong::Missing(_)
            | Wrong::Type { .. }
            | Wrong::Inexact(_)
            | Wrong::Value { .. }
            | Wrong::TooManyOperations
            | Wrong::TooLarge => self.to_string(),
        }
    }
}

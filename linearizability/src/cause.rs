//! Causes of violations. A cause names the model (the kind of object, such as a register), the operation and the kind
//! of violation. It omits values, lists, counts, keys, processes and times, because these differ between timelines with
//! the same cause.

use super::error::Wrong;
use super::evidence::Evidence;
use super::spec::ModelKind;

/// All violations in a report that have the same cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViolationGroup<T> {
    /// Text of the cause. A finding's signature is computed from this text. Violations with equal signatures count as
    /// one finding.
    pub cause: String,
    /// First violation with this cause.
    pub first: T,
    /// Number of violations with this cause.
    pub count: u64,
}

/// Groups, sorted by the text of the cause. They are not sorted by keys or elements, because those are values, which
/// differ between timelines. The list is short, because a history has only a few causes.
#[derive(Debug)]
pub(super) struct ViolationGroups<T>(Vec<ViolationGroup<T>>);

impl<T> ViolationGroups<T> {
    pub(super) fn new() -> ViolationGroups<T> {
        ViolationGroups(Vec::new())
    }

    /// Counts a violation with this cause. Calls `value` only for the first violation of each cause.
    pub(super) fn add(&mut self, cause: String, value: impl FnOnce() -> T) {
        let place = self.0.partition_point(|group| group.cause < cause);
        match self.0.get_mut(place) {
            Some(group) if group.cause == cause => group.count += 1,
            _ => self.0.insert(place, ViolationGroup { cause, first: value(), count: 1 }),
        }
    }

    pub(super) fn all(self) -> Vec<ViolationGroup<T>> {
        self.0
    }
}

/// Violations of linearizability, one for each cause.
#[derive(Debug)]
pub(super) struct Violations {
    certain: ViolationGroups<Evidence>,
    uncertain: ViolationGroups<Evidence>,
}

impl Violations {
    pub(super) fn new() -> Violations {
        Violations { certain: ViolationGroups::new(), uncertain: ViolationGroups::new() }
    }

    pub(super) fn add(&mut self, model: ModelKind, evidence: &Evidence) {
        let groups = if evidence.earliest { &mut self.certain } else { &mut self.uncertain };
        groups.add(evidence.cause(model), || evidence.clone());
    }

    /// Returns one violation for each certain cause. If no cause is certain, returns only the uncertain cause whose
    /// text comes first.
    ///
    /// A certain cause names the operation that is known to be the first impossible one. An uncertain cause names the
    /// operation at which the search got stuck. Searches can get stuck at different operations because of the same
    /// defect, so one defect can have several uncertain causes.
    pub(super) fn all(self) -> Vec<ViolationGroup<Evidence>> {
        let mut all = self.certain.all();
        if all.is_empty() {
            all = self.uncertain.all();
            all.truncate(1);
        }
        all
    }
}

/// Kind of a lost write, or of a dequeue that cannot be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LossKind {
    /// A write was acknowledged, and its effect is missing.
    Gone,
    /// A dequeue returned an element that was never enqueued.
    NeverIn,
    /// An element was dequeued more often than it was enqueued.
    TooOften,
}

impl LossKind {
    /// Returns the text of the cause. `f` is the name of the operation.
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
    /// Returns the cause of the error, without names, values and line numbers.
    #[must_use]
    pub fn cause(&self) -> String {
        match self {
            // The cause omits the JSON parser's message, which depends on where the line was cut off.
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

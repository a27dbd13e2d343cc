//! What of a violation tells one cause from another: its kind, the model, and the operation and its role. Values, lists, counts,
//! keys, processes and times are left out, since one cause shows in other ones on each timeline.

use super::evidence::Evidence;
use super::lost::{Loss, Lost};
use super::model::ModelKind;
use super::problem::Wrong;
use super::report::Report;

/// What of a report is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gist<T> {
    /// Its cause, as far as that can be told from what was seen: equal for equal causes.
    pub cause: String,
    /// What was found with this cause first.
    pub first: T,
}

impl Report {
    /// The loss to tell, if something is lost. Of several it is of the cause that comes first by name, not of the key or element
    /// that does, since those depend on values.
    #[must_use]
    pub fn gist_of_losses(&self) -> Option<Gist<&Lost>> {
        first(self.lost.iter().map(|lost| Gist { cause: lost.cause(self.model), first: lost }))
    }

    /// The violation to tell, if there is one.
    #[must_use]
    pub fn gist_of_violations(&self) -> Option<Gist<&Evidence>> {
        first(self.violations().map(|evidence| Gist { cause: evidence.cause(self.model), first: evidence }))
    }
}

fn first<T>(gists: impl Iterator<Item = Gist<T>>) -> Option<Gist<T>> {
    gists.min_by(|a, b| a.cause.cmp(&b.cause))
}

impl Lost {
    fn cause(&self, model: ModelKind) -> String {
        let f = self.operation.f;
        match self.loss {
            Loss::Replaced { .. } | Loss::Missing { .. } | Loss::Stuck { .. } => {
                format!("{model}: acknowledged {f} is gone")
            }
            Loss::Twice { enqueued: 0, .. } => format!("{model}: {f} of what never went in"),
            Loss::Twice { .. } => format!("{model}: {f} more often than it went in"),
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

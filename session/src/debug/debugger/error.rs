//! A command that cannot be carried out.

/// A command that cannot be carried out here, with the reason in one line. The timeline has not moved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl Refused {
    /// Returns the error for a reason.
    pub(super) fn because(why: impl Into<String>) -> anyhow::Error {
        Refused(why.into()).into()
    }
}

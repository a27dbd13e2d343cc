//! The one error type: text for the host.

use std::fmt;

/// What failed and why, in one line.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure that this text explains.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Failure(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Says what was being done when an error came.
pub(crate) trait Context<T> {
    /// `what` reads as "cannot WHAT".
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| Failure(format!("cannot {}: {error}", what())))
    }
}

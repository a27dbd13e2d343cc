//! Error type of the agent: a text for the host.

use std::fmt;

/// Description of a failed action and the cause, in one line.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// Creates a failure from its complete text.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Failure(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Conversion of errors to a [`Failure`] that names the failed action.
pub(crate) trait Context<T> {
    /// Converts the error to a [`Failure`] that reads "cannot WHAT: ERROR", where `what` returns WHAT.
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| Failure(format!("cannot {}: {error}", what())))
    }
}

//! Exceptions.

use everett_scripting::error::Error;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyLookupError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

pyo3::create_exception!(everett, EverettError, PyException, "Everett could not do what a call asks for.");
pyo3::create_exception!(everett, UnmappedError, EverettError, "Memory is not mapped.");
pyo3::create_exception!(
    everett,
    NoEndError,
    EverettError,
    "A command did not end within its limit. `killed` is true if it was killed then. `stdout` and `stderr` have its output so far."
);

/// Returns the exception for an error.
pub(crate) fn exception(error: Error) -> PyErr {
    match error {
        Error::Argument(text) => PyValueError::new_err(text),
        Error::Missing(text) => PyLookupError::new_err(text),
        Error::Unmapped(text) => UnmappedError::new_err(text),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::Failed(text) => EverettError::new_err(text),
    }
}

/// Returns the exception for a command that did not end within its limit.
pub(crate) fn no_end(
    py: Python<'_>,
    text: String,
    was_killed: bool,
    (stdout, stderr): (&[u8], &[u8]),
) -> PyErr {
    let error = NoEndError::new_err(text);
    let value = error.value(py);
    let set = value
        .setattr("killed", was_killed)
        .and_then(|()| value.setattr("stdout", PyBytes::new(py, stdout)))
        .and_then(|()| value.setattr("stderr", PyBytes::new(py, stderr)));
    match set {
        Ok(()) => error,
        Err(other) => other,
    }
}

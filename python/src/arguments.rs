//! Arguments of calls.

use std::fmt::Display;
use std::path::PathBuf;

use everett_input::text::quoted;
use everett_scripting::error::Error;
use everett_scripting::values;
use everett_session::explore::id::Id;
use everett_session::inside::debug_files::DebugFolders;
use everett_session::machines::engines::EngineChoice;
use pyo3::exceptions::{PyLookupError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

use crate::errors::exception;
use crate::guest::Process;
use crate::recorded::{Branch, Finding};

/// Returns a vtime or duration in nanoseconds: a text with a unit such as `"3.2s"`, or a number of seconds.
pub(crate) fn nanoseconds(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let ns = if let Ok(text) = value.extract::<String>() {
        values::from_text(&text)
    } else if value.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err("a vtime is a text such as \"3.2s\", or a number of seconds"));
    } else if let Ok(seconds) = value.extract::<u64>() {
        seconds
            .checked_mul(1_000_000_000)
            .ok_or_else(|| Error::Argument(format!("{seconds} is not a number of seconds")))
    } else if let Ok(seconds) = value.extract::<f64>() {
        values::from_seconds(seconds)
    } else {
        return Err(PyTypeError::new_err("a vtime is a text such as \"3.2s\", or a number of seconds"));
    };
    ns.map_err(exception)
}

/// Returns the finding or branch: an object, the number of a finding, or a text such as `"b17"`.
pub(crate) fn id(value: &Bound<'_, PyAny>) -> PyResult<Id> {
    if let Ok(finding) = value.cast::<Finding>() {
        return Ok(Id::Finding(finding.get().number));
    }
    if let Ok(branch) = value.cast::<Branch>() {
        return Ok(Id::Branch(branch.get().number));
    }
    if let Ok(text) = value.extract::<String>() {
        let number = text.strip_prefix('b').unwrap_or(&text);
        return text.parse().map_err(|why| match number.bytes().all(|byte| byte.is_ascii_digit()) {
            true if !number.is_empty() => missing(&text),
            _ => PyValueError::new_err(why),
        });
    }
    match whole(value) {
        Some(number) => Ok(Id::Finding(number.extract().map_err(|_| missing(number))?)),
        None => {
            Err(PyTypeError::new_err("name a finding by its number, as in 1, or a branch, as in \"b17\""))
        }
    }
}

/// Returns the branch: an object, its number, or a text such as `"b17"`.
pub(crate) fn branch(value: &Bound<'_, PyAny>) -> PyResult<Id> {
    if let Some(number) = whole(value) {
        return Ok(Id::Branch(number.extract().map_err(|_| missing(number))?));
    }
    match id(value) {
        Ok(Id::Finding(_)) => Err(PyTypeError::new_err("name a branch by its number, as in 17 or \"b17\"")),
        other => other,
    }
}

/// Returns the value if it is a whole number.
fn whole<'v, 'py>(value: &'v Bound<'py, PyAny>) -> Option<&'v Bound<'py, PyInt>> {
    // True and False are whole numbers in Python.
    value.cast::<PyInt>().ok().filter(|value| !value.is_instance_of::<PyBool>())
}

/// Returns the exception for a number that no finding or branch can have.
fn missing(number: impl Display) -> PyErr {
    PyLookupError::new_err(format!("the run has no finding or branch {}", quoted(&number.to_string())))
}

/// Returns the finding: its number.
pub(crate) fn finding(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    match whole(value) {
        Some(number) => number.extract().map_err(|_| missing(number)),
        None => Err(PyTypeError::new_err("name a finding by its number, as in 1")),
    }
}

/// Returns the name of a process: its name, or its ID.
pub(crate) fn process(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(process) = value.cast::<Process>() {
        return Ok(process.get().pid.to_string());
    }
    match value.extract::<u32>() {
        Ok(pid) if !value.is_instance_of::<PyBool>() => Ok(pid.to_string()),
        _ => value
            .extract::<String>()
            .map_err(|_| PyTypeError::new_err("name a process by its name or its ID")),
    }
}

/// Returns the engine of this name.
pub(crate) fn engine(name: &str) -> PyResult<EngineChoice> {
    match name {
        "auto" => Ok(EngineChoice::Auto),
        "soft" => Ok(EngineChoice::Soft),
        "kvm" => Ok(EngineChoice::Kvm),
        other => {
            Err(PyValueError::new_err(format!("engine: {other:?} is not one of \"auto\", \"soft\", \"kvm\"")))
        }
    }
}

/// Returns folders with debug files.
pub(crate) fn debug_files(folders: Vec<PathBuf>) -> PyResult<DebugFolders> {
    match folders.iter().find(|folder| !folder.is_dir()) {
        Some(missing) => {
            Err(PyValueError::new_err(format!("debug_files: {} is no folder", missing.display())))
        }
        None => Ok(DebugFolders::new(folders)),
    }
}

//! The class `Fork`.

use std::sync::{Arc, Mutex};

use everett_scripting::error::Error;
use everett_scripting::fork::{self, Command, End};
use everett_scripting::host::Host;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::arguments::nanoseconds;
use crate::calls::long;
use crate::errors::no_end;
use crate::machines::Machines;
use crate::timeline::{Finished, seconds};

/// A timeline that goes on from a moment.
#[pyclass(frozen, extends = Machines, module = "everett")]
pub(crate) struct Fork(Arc<Mutex<fork::Fork>>);

impl Fork {
    pub(crate) fn create(py: Python<'_>, fork: fork::Fork) -> PyResult<Py<Fork>> {
        let nodes = fork.nodes();
        let fork = Arc::new(Mutex::new(fork));
        let machines = Machines::of_fork(&fork, nodes);
        Py::new(py, (Fork(fork), machines))
    }
}

/// Does `work` in a fork.
fn in_fork<T: Send>(
    slf: &Bound<'_, Fork>,
    work: impl FnOnce(&Host<'_>, &mut fork::Fork) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let fork = &slf.get().0;
    long(slf.py(), |host| work(host, &mut *host.lock(fork)?))
}

#[pymethods]
impl Fork {
    fn run_for(slf: &Bound<'_, Self>, vtime: &Bound<'_, PyAny>) -> PyResult<()> {
        let ns = nanoseconds(vtime)?;
        in_fork(slf, |host, fork| fork.run_for(host, ns))
    }

    #[pyo3(signature = (node, command, *, user=None, input=None, limit=None))]
    fn exec(
        slf: &Bound<'_, Self>,
        node: &str,
        command: &Bound<'_, PyAny>,
        user: Option<&str>,
        input: Option<String>,
        limit: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Finished> {
        /// Limit of commands without one, in nanoseconds of vtime: one minute.
        const LIMIT_NS: u64 = 60_000_000_000;
        // A text would be a list of its letters.
        if command.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("a command is a list, such as [\"sh\", \"-c\", \"uname -r\"]"));
        }
        let argv: Vec<String> = command.extract()?;
        let limit_ns = limit.map_or(Ok(LIMIT_NS), nanoseconds)?;
        let command = Command { argv, user, input, limit_ns };
        let finished = in_fork(slf, |host, fork| fork.exec(host, node, command))?;
        let end = match finished.end {
            End::Exited(_) => return Ok(finished.into()),
            End::Limit => "and was killed",
            End::NoAnswer => "and was not killed: the node is paused, or its agent does not answer",
        };
        let text = format!("{node}: the command did not end within {} s of vtime, {end}", seconds(limit_ns));
        let output = (&finished.stdout[..], &finished.stderr[..]);
        Err(no_end(slf.py(), text, finished.end == End::Limit, output))
    }

    #[pyo3(signature = (fault, *, duration=None, **fields))]
    fn inject(
        slf: &Bound<'_, Self>,
        fault: &str,
        duration: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u32> {
        let line = match fields {
            Some(fields) => fields.copy()?,
            None => PyDict::new(slf.py()),
        };
        line.set_item("fault", fault)?;
        if let Some(duration) = duration {
            line.set_item("for", nanoseconds(duration)?)?;
        }
        let line: String = slf.py().import("json")?.call_method1("dumps", (line,))?.extract()?;
        in_fork(slf, |_, fork| fork.inject(&line))
    }

    fn calm(slf: &Bound<'_, Self>) -> PyResult<()> {
        in_fork(slf, |_, fork| {
            fork.calm();
            Ok(())
        })
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.as_super().get().shown(slf.py(), "Fork")
    }
}

//! The class `Fork`.

use std::sync::{Mutex, MutexGuard};

use everett_scripting::error::Error;
use everett_scripting::fork::{self, Command, End};
use everett_scripting::host::Host;
use everett_scripting::view::View;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::arguments::{nanoseconds, process};
use crate::calls::long;
use crate::errors::no_end;
use crate::guest::{Mapping, OpenFile, Process, Socket, Stack, known};
use crate::timeline::{Event, Finished, Judged, Message, seconds};

/// A timeline that goes on from a moment.
#[pyclass(frozen, module = "everett")]
pub(crate) struct Fork {
    fork: Mutex<fork::Fork>,
    nodes: Vec<String>,
}

impl Fork {
    pub(crate) fn new(fork: fork::Fork) -> Fork {
        let nodes = fork.nodes();
        Fork { fork: Mutex::new(fork), nodes }
    }

    /// Locks the fork, which another thread of the script can use.
    fn lock(&self, host: &Host<'_>) -> Result<MutexGuard<'_, fork::Fork>, Error> {
        host.lock(&self.fork)
    }

    fn look<T: Send>(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&View<'_>) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        long(py, |host| self.lock(host)?.look(host, look))
    }
}

#[pymethods]
impl Fork {
    #[getter]
    fn vtime_ns(&self, py: Python<'_>) -> PyResult<u64> {
        long(py, |host| Ok(self.lock(host)?.vtime_ns()))
    }

    #[getter]
    fn vtime(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(seconds(self.vtime_ns(py)?))
    }

    #[getter]
    fn nodes(&self) -> Vec<String> {
        self.nodes.clone()
    }

    fn digest(&self, py: Python<'_>) -> PyResult<String> {
        long(py, |host| Ok(format!("{:#}", self.lock(host)?.digest())))
    }

    fn run_for(&self, py: Python<'_>, vtime: &Bound<'_, PyAny>) -> PyResult<()> {
        let ns = nanoseconds(vtime)?;
        long(py, |host| self.lock(host)?.run_for(host, ns))
    }

    #[pyo3(signature = (node, command, *, user=None, input=None, limit=None))]
    fn exec(
        &self,
        py: Python<'_>,
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
        let finished = long(py, |host| self.lock(host)?.exec(host, node, command))?;
        let end = match finished.end {
            End::Exited(_) => return Ok(finished.into()),
            End::Limit => "and was killed",
            End::NoAnswer => "and was not killed: the node is paused, or its agent does not answer",
        };
        let text = format!("{node}: the command did not end within {} s of vtime, {end}", seconds(limit_ns));
        let output = (&finished.stdout[..], &finished.stderr[..]);
        Err(no_end(py, text, finished.end == End::Limit, output))
    }

    #[pyo3(signature = (fault, *, duration=None, **fields))]
    fn inject(
        &self,
        py: Python<'_>,
        fault: &str,
        duration: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u32> {
        let line = match fields {
            Some(fields) => fields.copy()?,
            None => PyDict::new(py),
        };
        line.set_item("fault", fault)?;
        if let Some(duration) = duration {
            line.set_item("for", nanoseconds(duration)?)?;
        }
        let line: String = py.import("json")?.call_method1("dumps", (line,))?.extract()?;
        long(py, |host| self.lock(host)?.inject(&line))
    }

    fn calm(&self, py: Python<'_>) -> PyResult<()> {
        long(py, |host| {
            self.lock(host)?.calm();
            Ok(())
        })
    }

    fn events(&self, py: Python<'_>) -> PyResult<Vec<Event>> {
        long(py, |host| Ok(self.lock(host)?.observed().events()?.iter().map(Event::from).collect()))
    }

    #[pyo3(signature = (node=None))]
    fn logs(&self, py: Python<'_>, node: Option<&str>) -> PyResult<Vec<Event>> {
        long(py, |host| {
            let fork = self.lock(host)?;
            Ok(fork.lines(node)?.into_iter().map(Event::from).collect())
        })
    }

    fn messages(&self, py: Python<'_>) -> PyResult<Vec<Message>> {
        long(py, |host| {
            let fork = self.lock(host)?;
            let messages = fork.observed().messages()?.iter();
            Ok(messages.map(|step| Message::of(step, &self.nodes)).collect())
        })
    }

    fn judge(&self, py: Python<'_>) -> PyResult<Judged> {
        let judged = long(py, |host| self.lock(host)?.judge())?;
        Judged::of(py, judged)
    }

    fn processes(&self, py: Python<'_>, node: &str) -> PyResult<Vec<Process>> {
        let found = self.look(py, |view| view.processes(node))?;
        Ok(found.into_iter().map(Process::from).collect())
    }

    fn mappings(&self, py: Python<'_>, node: &str, process: &Bound<'_, PyAny>) -> PyResult<Vec<Mapping>> {
        let process = self::process(process)?;
        let found = self.look(py, |view| view.mappings(node, &process))?;
        Ok(found.into_iter().map(Mapping::from).collect())
    }

    #[pyo3(signature = (node, process=None))]
    fn stacks(&self, py: Python<'_>, node: &str, process: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Stack>> {
        let process = process.map(self::process).transpose()?;
        let found = self.look(py, |view| view.stacks(node, process.as_deref()))?;
        Ok(found.into_iter().map(Stack::from).collect())
    }

    fn sockets(&self, py: Python<'_>, node: &str) -> PyResult<Vec<Socket>> {
        let found = self.look(py, |view| view.sockets(node))?;
        Ok(found.into_iter().map(Socket::from).collect())
    }

    fn files(&self, py: Python<'_>, node: &str, process: &Bound<'_, PyAny>) -> PyResult<Vec<OpenFile>> {
        let process = self::process(process)?;
        let found = self.look(py, |view| view.files(node, &process))?;
        Ok(found.into_iter().map(OpenFile::from).collect())
    }

    fn memory<'py>(
        &self,
        py: Python<'py>,
        node: &str,
        process: &Bound<'py, PyAny>,
        address: u64,
        length: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let process = self::process(process)?;
        let found = self.look(py, |view| view.memory(node, &process, address, length))?;
        Ok(PyBytes::new(py, &found))
    }

    fn value<'py>(
        &self,
        py: Python<'py>,
        node: &str,
        process: &Bound<'py, PyAny>,
        expression: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let process = self::process(process)?;
        known(py, self.look(py, |view| view.value(node, &process, expression))?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Fork(vtime={:.9}, nodes={:?})", self.vtime(py)?, self.nodes))
    }
}

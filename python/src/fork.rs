//! The class `Fork`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use everett_scripting::error::Error;
use everett_scripting::fork::{self, Command};
use everett_scripting::view::View;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::arguments::{nanoseconds, process};
use crate::calls::long;
use crate::errors::no_end;
use crate::guest::{Mapping, OpenFile, Process, Socket, Stack, known};
use crate::timeline::{Event, Finished, Judged, Message, is_line, seconds};

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

    fn lock(&self) -> MutexGuard<'_, fork::Fork> {
        self.fork.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look<T: Send>(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&View<'_>) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        long(py, |host| self.lock().look(host, look))
    }
}

#[pymethods]
impl Fork {
    #[getter]
    fn vtime_ns(&self, py: Python<'_>) -> PyResult<u64> {
        long(py, |_| Ok(self.lock().vtime_ns()))
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
        long(py, |_| Ok(format!("{:#}", self.lock().digest())))
    }

    fn run_for(&self, py: Python<'_>, vtime: &Bound<'_, PyAny>) -> PyResult<()> {
        let ns = nanoseconds(vtime)?;
        long(py, |host| self.lock().run_for(host, ns))
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
        let finished = long(py, |host| self.lock().exec(host, node, command))?;
        if finished.exit.is_none() {
            let text = format!("{node}: the command did not end within {} s of vtime", seconds(limit_ns));
            return Err(no_end(py, text, &finished.stdout, &finished.stderr));
        }
        Ok(finished.into())
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
        long(py, |_| self.lock().inject(&line))
    }

    fn calm(&self, py: Python<'_>) -> PyResult<()> {
        long(py, |_| {
            self.lock().calm();
            Ok(())
        })
    }

    fn events(&self, py: Python<'_>) -> PyResult<Vec<Event>> {
        long(py, |_| Ok(self.lock().observed().events()?.iter().map(Event::from).collect()))
    }

    #[pyo3(signature = (node=None))]
    fn logs(&self, py: Python<'_>, node: Option<&str>) -> PyResult<Vec<Event>> {
        long(py, |_| {
            let fork = self.lock();
            let events = fork.observed().events()?.iter();
            let wanted = events.filter(|event| is_line(event) && node.is_none_or(|node| node == event.node));
            Ok(wanted.map(Event::from).collect())
        })
    }

    fn messages(&self, py: Python<'_>) -> PyResult<Vec<Message>> {
        long(py, |_| {
            let fork = self.lock();
            let messages = fork.observed().messages()?.iter();
            Ok(messages.map(|step| Message::of(step, &self.nodes)).collect())
        })
    }

    fn judge(&self, py: Python<'_>) -> PyResult<Judged> {
        let judged = long(py, |_| self.lock().judge())?;
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

//! The common base class of `Moment` and `Fork`: machines that are read from outside.

use std::sync::{Arc, Mutex};

use everett_scripting::error::Error;
use everett_scripting::observed::Observed;
use everett_scripting::view::View;
use everett_scripting::{fork, moment};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::process;
use crate::calls::long;
use crate::guest::{Mapping, OpenFile, Process, Socket, Stack, known};
use crate::timeline::{Event, Judged, Message, seconds};

/// Machines of a moment or of a fork.
#[pyclass(frozen, subclass, name = "_Machines", module = "everett")]
pub(crate) struct Machines {
    of: Of,
    nodes: Vec<String>,
}

/// Owner of machines, which the object of the subclass has, too.
enum Of {
    Moment(Arc<moment::Moment>),
    /// A fork, which another thread of the script can use.
    Fork(Arc<Mutex<fork::Fork>>),
}

impl Machines {
    pub(crate) fn of_moment(moment: &Arc<moment::Moment>) -> Machines {
        Machines { nodes: moment.nodes(), of: Of::Moment(Arc::clone(moment)) }
    }

    pub(crate) fn of_fork(fork: &Arc<Mutex<fork::Fork>>, nodes: Vec<String>) -> Machines {
        Machines { nodes, of: Of::Fork(Arc::clone(fork)) }
    }

    fn look<T: Send>(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&View<'_>) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        long(py, |host| match &self.of {
            Of::Moment(moment) => moment.look(host, look),
            Of::Fork(fork) => host.lock(fork)?.look(host, look),
        })
    }

    fn observed<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&Observed) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        long(py, |host| match &self.of {
            Of::Moment(moment) => read(moment.observed()),
            Of::Fork(fork) => read(host.lock(fork)?.observed()),
        })
    }

    /// Returns the machines as a text, with the name of their class.
    pub(crate) fn shown(&self, py: Python<'_>, class: &str) -> PyResult<String> {
        Ok(format!("{class}(vtime={:.9}, nodes={:?})", self.vtime(py)?, self.nodes))
    }
}

#[pymethods]
impl Machines {
    #[getter]
    fn vtime_ns(&self, py: Python<'_>) -> PyResult<u64> {
        match &self.of {
            Of::Moment(moment) => Ok(moment.vtime_ns()),
            Of::Fork(fork) => long(py, |host| Ok(host.lock(fork)?.vtime_ns())),
        }
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
        long(py, |host| {
            let digest = match &self.of {
                Of::Moment(moment) => moment.digest(host)?,
                Of::Fork(fork) => host.lock(fork)?.digest(),
            };
            Ok(format!("{digest:#}"))
        })
    }

    fn events(&self, py: Python<'_>) -> PyResult<Vec<Event>> {
        self.observed(py, |observed| Ok(observed.events()?.iter().map(Event::from).collect()))
    }

    #[pyo3(signature = (node=None))]
    fn logs(&self, py: Python<'_>, node: Option<&str>) -> PyResult<Vec<Event>> {
        self.observed(py, |observed| {
            let lines = observed.lines(node.map(|node| (node, &*self.nodes)))?;
            Ok(lines.into_iter().map(Event::from).collect())
        })
    }

    fn messages(&self, py: Python<'_>) -> PyResult<Vec<Message>> {
        self.observed(py, |observed| {
            Ok(observed.messages()?.iter().map(|step| Message::of(step, &self.nodes)).collect())
        })
    }

    fn judge(&self, py: Python<'_>) -> PyResult<Judged> {
        let judged = long(py, |host| match &self.of {
            Of::Moment(moment) => moment.judge(),
            Of::Fork(fork) => host.lock(fork)?.judge(),
        })?;
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
}

//! The class `Moment`.

use everett_scripting::error::Error;
use everett_scripting::moment;
use everett_scripting::view::View;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::process;
use crate::calls::long;
use crate::fork::Fork;
use crate::guest::{Mapping, OpenFile, Process, Socket, Stack, known};
use crate::timeline::{Event, Judged, Message, seconds};

/// An instant of a timeline.
#[pyclass(frozen, module = "everett")]
pub(crate) struct Moment {
    moment: moment::Moment,
    nodes: Vec<String>,
}

impl Moment {
    pub(crate) fn new(moment: moment::Moment) -> Moment {
        let nodes = moment.nodes();
        Moment { moment, nodes }
    }

    fn look<T: Send>(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&View<'_>) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        long(py, |host| self.moment.look(host, look))
    }
}

#[pymethods]
impl Moment {
    #[getter]
    fn vtime_ns(&self) -> u64 {
        self.moment.vtime_ns()
    }

    #[getter]
    fn vtime(&self) -> f64 {
        seconds(self.moment.vtime_ns())
    }

    #[getter]
    fn nodes(&self) -> Vec<String> {
        self.nodes.clone()
    }

    #[getter]
    fn name(&self) -> String {
        self.moment.name()
    }

    #[getter]
    fn ended(&self) -> Option<&str> {
        self.moment.ended()
    }

    #[getter]
    fn plan(&self) -> String {
        self.moment.plan()
    }

    fn digest(&self, py: Python<'_>) -> PyResult<String> {
        long(py, |host| Ok(format!("{:#}", self.moment.digest(host)?)))
    }

    fn fork(&self, py: Python<'_>) -> PyResult<Fork> {
        Ok(Fork::new(long(py, |_| self.moment.fork())?))
    }

    fn events(&self, py: Python<'_>) -> PyResult<Vec<Event>> {
        long(py, |_| Ok(self.moment.observed().events()?.iter().map(Event::from).collect()))
    }

    #[pyo3(signature = (node=None))]
    fn logs(&self, py: Python<'_>, node: Option<&str>) -> PyResult<Vec<Event>> {
        long(py, |_| Ok(self.moment.lines(node)?.into_iter().map(Event::from).collect()))
    }

    fn messages(&self, py: Python<'_>) -> PyResult<Vec<Message>> {
        long(py, |_| {
            let messages = self.moment.observed().messages()?.iter();
            Ok(messages.map(|step| Message::of(step, &self.nodes)).collect())
        })
    }

    fn judge(&self, py: Python<'_>) -> PyResult<Judged> {
        let judged = long(py, |_| self.moment.judge())?;
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

    fn __repr__(&self) -> String {
        format!("Moment(vtime={:.9}, nodes={:?})", self.vtime(), self.nodes)
    }
}

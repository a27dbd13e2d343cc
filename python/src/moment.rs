//! The class `Moment`.

use std::sync::Arc;

use everett_scripting::moment;
use pyo3::prelude::*;

use crate::calls::long;
use crate::fork::Fork;
use crate::machines::Machines;

/// An instant of a timeline.
#[pyclass(frozen, extends = Machines, module = "everett")]
pub(crate) struct Moment(Arc<moment::Moment>);

impl Moment {
    pub(crate) fn create(py: Python<'_>, moment: moment::Moment) -> PyResult<Py<Moment>> {
        let moment = Arc::new(moment);
        let machines = Machines::of_moment(&moment);
        Py::new(py, (Moment(moment), machines))
    }
}

#[pymethods]
impl Moment {
    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    #[getter]
    fn ended(&self) -> Option<String> {
        self.0.ended().map(str::to_owned)
    }

    #[getter]
    fn plan(&self) -> String {
        self.0.plan()
    }

    fn fork(&self, py: Python<'_>) -> PyResult<Py<Fork>> {
        Fork::create(py, long(py, |_| self.0.fork())?)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.as_super().get().shown(slf.py(), "Moment")
    }
}

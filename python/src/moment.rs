//! The class `Moment`.

use everett_scripting::error::Error;
use everett_scripting::moment;
use pyo3::prelude::*;

use crate::calls::long;
use crate::errors::exception;
use crate::fork::Fork;
use crate::machines::Machines;

/// An instant of a timeline.
#[pyclass(frozen, extends = Machines, module = "everett")]
pub(crate) struct Moment;

impl Moment {
    pub(crate) fn create(py: Python<'_>, moment: moment::Moment) -> PyResult<Py<Moment>> {
        Py::new(py, (Moment, Machines::of_moment(moment)))
    }
}

fn of<'m>(slf: &'m Bound<'_, Moment>) -> PyResult<&'m moment::Moment> {
    let moment = slf.as_super().get().moment();
    moment.ok_or_else(|| exception(Error::Failed("this is not a moment".to_owned())))
}

#[pymethods]
impl Moment {
    #[getter]
    fn name(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(of(slf)?.name())
    }

    #[getter]
    fn ended(slf: &Bound<'_, Self>) -> PyResult<Option<String>> {
        Ok(of(slf)?.ended().map(str::to_owned))
    }

    #[getter]
    fn plan(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(of(slf)?.plan())
    }

    fn fork(slf: &Bound<'_, Self>) -> PyResult<Py<Fork>> {
        let moment = of(slf)?;
        Fork::create(slf.py(), long(slf.py(), |_| moment.fork())?)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.as_super().get().shown(slf.py(), "Moment")
    }
}

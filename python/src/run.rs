//! The class `Run`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use everett_scripting::error::Error;
use everett_scripting::run;
use pyo3::prelude::*;

use crate::arguments::{branch, debug_files as folders, engine as named, finding, id, nanoseconds};
use crate::calls::long;
use crate::errors::exception;
use crate::moment::Moment;
use crate::recorded::{Branch, Finding};

/// The run directory of an exploration.
#[pyclass(frozen, module = "everett")]
pub(crate) struct Run {
    run: run::Run,
    folder: PathBuf,
}

#[pymethods]
impl Run {
    #[getter]
    fn nodes(&self) -> Vec<String> {
        self.run.header().nodes.clone()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.run.header().seed.number()
    }

    #[getter]
    fn world_file(&self) -> &str {
        &self.run.header().world_file
    }

    #[getter]
    fn findings(&self) -> Vec<Finding> {
        self.run.merged().findings().iter().map(Finding::from).collect()
    }

    /// Number of branches that violate each property.
    #[getter]
    fn properties(&self) -> BTreeMap<String, u64> {
        let properties = self.run.merged().properties().iter();
        properties.map(|(name, tally)| (name.clone(), tally.branches)).collect()
    }

    fn finding(&self, number: &Bound<'_, PyAny>) -> PyResult<Finding> {
        self.run.finding(finding(number)?).map(Finding::from).map_err(exception)
    }

    fn branch(&self, py: Python<'_>, number: &Bound<'_, PyAny>) -> PyResult<Branch> {
        let wanted = branch(number)?;
        Ok(long(py, |_| self.run.record(wanted))?.into())
    }

    fn __len__(&self) -> PyResult<usize> {
        let count = usize::try_from(self.run.branches());
        count.map_err(|_| exception(Error::Failed("too many branches".to_owned())))
    }

    #[pyo3(signature = (of, at=None))]
    fn moment(
        &self,
        py: Python<'_>,
        of: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Moment>> {
        let (id, at_ns) = (id(of)?, at.map(nanoseconds).transpose()?);
        Moment::create(py, long(py, |host| self.run.moment(host, id, at_ns))?)
    }

    fn root(&self, py: Python<'_>) -> PyResult<Py<Moment>> {
        Moment::create(py, long(py, |host| self.run.root(host))?)
    }

    fn __repr__(&self) -> String {
        let (branches, findings) = (self.run.branches(), self.run.merged().findings().len());
        format!("Run({:?}, {branches} branches, {findings} findings)", self.folder.display().to_string())
    }
}

/// Opens a run directory.
#[pyfunction]
#[pyo3(signature = (run_directory, *, engine="auto", debug_files=Vec::new()))]
pub(crate) fn open(
    py: Python<'_>,
    run_directory: PathBuf,
    engine: &str,
    debug_files: Vec<PathBuf>,
) -> PyResult<Run> {
    let (engine, debug) = (named(engine)?, folders(debug_files)?);
    let run = long(py, |_| run::Run::open(&run_directory, engine, debug))?;
    Ok(Run { run, folder: run_directory })
}

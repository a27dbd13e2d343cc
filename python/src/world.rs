//! The class `World`.

use std::path::PathBuf;

use everett_scripting::world;
use everett_streams::Seed;
use pyo3::prelude::*;

use crate::arguments::{debug_files as folders, engine as named};
use crate::calls::long;
use crate::moment::Moment;

/// A world whose services are ready.
#[pyclass(frozen, module = "everett")]
pub(crate) struct World {
    world: world::World,
    file: PathBuf,
}

#[pymethods]
impl World {
    #[getter]
    fn nodes(&self) -> Vec<String> {
        self.world.nodes()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.world.seed().number()
    }

    #[pyo3(signature = (plan=""))]
    fn root(&self, py: Python<'_>, plan: &str) -> PyResult<Py<Moment>> {
        Moment::create(py, long(py, |_| self.world.root(plan))?)
    }

    fn __repr__(&self) -> String {
        format!(
            "World({:?}, nodes={:?}, seed={})",
            self.file.display().to_string(),
            self.nodes(),
            self.seed()
        )
    }
}

/// Boots a world file.
#[pyfunction]
#[pyo3(signature = (world_file, *, seed=None, engine="auto", debug_files=Vec::new()))]
pub(crate) fn boot(
    py: Python<'_>,
    world_file: PathBuf,
    seed: Option<u64>,
    engine: &str,
    debug_files: Vec<PathBuf>,
) -> PyResult<World> {
    let (engine, debug) = (named(engine)?, folders(debug_files)?);
    let world = long(py, |host| world::World::boot(host, &world_file, seed.map(Seed::new), engine, debug))?;
    Ok(World { world, file: world_file })
}

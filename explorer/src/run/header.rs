//! The header of a run directory, which identifies the exploration: `run.json`.

use std::path::Path;

use everett_streams::Seed;
use serde::{Deserialize, Serialize};

use super::folder;
use super::names::HEADER;
use super::problem::RunError;
use super::version::{SCHEMA_VERSION, SCHEMA_VERSION_OLDEST};
use crate::search::strategy::StrategyKind;

/// Identity and parameters of an exploration. Everything that a run's results depend on is here or is covered by
/// `identity`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of the format: [`SCHEMA_VERSION_OLDEST`] to [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of Everett.
    pub everett: String,
    /// Version of the machine.
    pub machine_version: String,
    /// Identity of the exploration, in hexadecimal digits.
    pub identity: String,
    /// Identity of the image.
    pub image: String,
    /// Path of the world file.
    pub world_file: String,
    /// The world as plain data, for comparison and for readers. It has integers and texts only, because fractions might
    /// not be read back exactly.
    pub world: serde_json::Value,
    /// Seed of all choices.
    pub seed: Seed,
    /// Strategy that chooses the moments from which branches start.
    pub strategy: StrategyName,
    /// K, the number of branches that may be chosen before the first one's result is known.
    pub in_flight: u32,
    /// Time of the root moment, in nanoseconds of vtime.
    pub root_ns: u64,
    /// Length of a branch, in nanoseconds of vtime.
    pub segment_ns: u64,
    /// Length of a timeline after the root moment, in nanoseconds of vtime.
    pub horizon_ns: u64,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Engine that executed the guests: `soft` or `kvm`. Exact engines give the same results, so another exact engine
    /// may resume the run.
    #[serde(default = "soft")]
    pub engine: String,
    /// True if the engine was proved exact on its host. If false, results may depend on the host and differ in another
    /// run.
    #[serde(default = "proved")]
    pub exact: bool,
}

/// A header of this format for a world without nodes, on the engine that is exact everywhere.
impl Default for Header {
    fn default() -> Header {
        Header {
            schema_version: SCHEMA_VERSION,
            everett: String::new(),
            machine_version: String::new(),
            identity: String::new(),
            image: String::new(),
            world_file: String::new(),
            world: serde_json::Value::Null,
            seed: Seed::default(),
            strategy: StrategyName(StrategyKind::default().name().to_owned()),
            in_flight: 1,
            root_ns: 0,
            segment_ns: 1,
            horizon_ns: 1,
            nodes: Vec::new(),
            engine: soft(),
            exact: proved(),
        }
    }
}

/// Returns the engine of headers that do not name an engine.
fn soft() -> String {
    "soft".to_owned()
}

/// Returns the exactness of headers that do not state it: the soft engine is exact everywhere.
fn proved() -> bool {
    true
}

/// Name of a strategy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StrategyName(pub String);

impl StrategyName {
    /// True if the strategy ignores earlier results, so that rates of hits do not depend on the search.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.0 == StrategyKind::Uniform.name()
    }

    /// True if nodes have random priorities.
    #[must_use]
    pub fn is_pct(&self) -> bool {
        self.0 == StrategyKind::Pct.name()
    }
}

/// The only field that headers of all format versions have.
#[derive(Deserialize)]
struct Version {
    schema_version: u32,
}

impl Header {
    /// Reads the header of a run directory.
    ///
    /// # Errors
    /// Returns an error if there is no header, or if it is invalid or of another format version.
    pub fn read(run: &Path) -> Result<Header, RunError> {
        let bytes = folder::read(run, HEADER)?.ok_or_else(|| RunError::NoRun(run.to_owned()))?;
        Header::parse(run, &bytes)
    }

    /// Writes the header, after a check that it can be read back.
    ///
    /// # Errors
    /// Returns an error if the header could not be read back, or if it cannot be written.
    pub(super) fn write(&self, run: &Path) -> Result<(), RunError> {
        let bytes = folder::to_json(run, HEADER, self)?;
        Header::parse(run, &bytes)?;
        folder::write(run, HEADER, &bytes)
    }

    fn parse(run: &Path, bytes: &[u8]) -> Result<Header, RunError> {
        let Version { schema_version } = folder::from_json(run, HEADER, bytes)?;
        if !(SCHEMA_VERSION_OLDEST..=SCHEMA_VERSION).contains(&schema_version) {
            let path = run.join(HEADER);
            return Err(RunError::Version { path, found: schema_version });
        }
        folder::from_json(run, HEADER, bytes)
    }
}

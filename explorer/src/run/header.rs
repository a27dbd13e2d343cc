//! What is explored: `run.json`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::folder;
use super::problem::RunError;
use crate::search::strategy::StrategyKind;

/// The format of run directories. Another one is refused.
pub const SCHEMA_VERSION: u32 = 3;

/// What is explored, and how. What a run's results depend on is all here or behind `identity`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The format: [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The program's version.
    pub everett: String,
    /// The machine's version.
    pub machine_version: String,
    /// The exploration's identity, in hexadecimal digits.
    pub identity: String,
    /// The image's.
    pub image: String,
    /// Where the world file was.
    pub world_file: String,
    /// The world as plain data, for a check and for readers. Whole numbers and texts: fractions need not come back as they were.
    pub world: serde_json::Value,
    /// The seed of all choices.
    pub seed: u64,
    /// From where branches go on.
    pub strategy: StrategyName,
    /// Branches that run at a time.
    pub in_flight: u32,
    /// The root moment, in nanoseconds of vtime.
    pub root_ns: u64,
    /// How long a branch is, in nanoseconds of vtime.
    pub segment_ns: u64,
    /// How long timelines get, in nanoseconds of vtime after the root moment.
    pub horizon_ns: u64,
    /// The nodes' names.
    pub nodes: Vec<String>,
    /// What executed the guests: `soft` or `kvm`. Exact ones do the same, so that another one may go on.
    #[serde(default = "soft")]
    pub engine: String,
    /// That engine had proved exact. If not, results may be the host's, and another run may give others.
    #[serde(default = "proved")]
    pub exact: bool,
}

/// The engine of headers that name none.
fn soft() -> String {
    "soft".to_owned()
}

/// Which is exact everywhere.
fn proved() -> bool {
    true
}

/// The name of a strategy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StrategyName(pub String);

impl StrategyName {
    /// Whether branches are drawn without regard to what was found, so that rates of hits are those of the world.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.0 == StrategyKind::Uniform.name()
    }

    /// Whether nodes have random priorities.
    #[must_use]
    pub fn is_pct(&self) -> bool {
        self.0 == StrategyKind::Pct.name()
    }
}

/// All that is known of a header of any format.
#[derive(Deserialize)]
struct Version {
    schema_version: u32,
}

impl Header {
    /// Read that of a run directory.
    ///
    /// # Errors
    /// There is none, or none that this version knows.
    pub fn read(run: &Path) -> Result<Header, RunError> {
        let bytes = folder::read(run, folder::HEADER)?.ok_or_else(|| RunError::NoRun(run.to_owned()))?;
        Header::parse(run, &bytes)
    }

    /// As the file has it.
    ///
    /// # Errors
    /// What would be written could not be read.
    pub(super) fn write(&self, run: &Path) -> Result<(), RunError> {
        let bytes = folder::to_json(run, folder::HEADER, self)?;
        Header::parse(run, &bytes)?;
        folder::write(run, folder::HEADER, &bytes)
    }

    fn parse(run: &Path, bytes: &[u8]) -> Result<Header, RunError> {
        let Version { schema_version } = folder::from_json(run, folder::HEADER, bytes)?;
        if schema_version != SCHEMA_VERSION {
            let path = run.join(folder::HEADER);
            return Err(RunError::Version { path, found: schema_version, known: SCHEMA_VERSION });
        }
        folder::from_json(run, folder::HEADER, bytes)
    }
}

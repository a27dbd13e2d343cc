//! The header of a run directory, stored as `run.json`. It identifies the exploration.

use std::path::Path;

use everett_streams::Seed;
use serde::{Deserialize, Serialize};

use super::error::RunError;
use super::folder;
use super::names::HEADER;
use super::version::{SCHEMA_VERSION, SCHEMA_VERSION_OLDEST};
use crate::search::strategy::StrategyKind;

/// Identity and parameters of an exploration. The results of a run depend only on these fields and on what `identity`
/// covers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Format version of the run, from [`SCHEMA_VERSION_OLDEST`] to [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of Everett.
    pub everett: String,
    /// Version of the simulated machine.
    pub machine_version: String,
    /// Identity of the exploration's timelines: a digest of everything that determines them, except seed and paths. In
    /// hexadecimal digits.
    pub identity: String,
    /// Digest of the world's image.
    pub image: String,
    /// Path of the world file.
    pub world_file: String,
    /// The world as plain data, for the comparison of explorations and for programs that read the file. Its values are
    /// integers and texts, because floats might not survive a round trip exactly.
    pub world: serde_json::Value,
    /// Seed of all choices.
    pub seed: Seed,
    /// Strategy that chooses the moments from which branches start.
    pub strategy: StrategyName,
    /// K, the maximum number of branches in flight (chosen, result not yet merged).
    pub in_flight: u32,
    /// Vtime of the root moment, at which all first branches start, in nanoseconds.
    pub root_ns: u64,
    /// Length of a branch, in nanoseconds of vtime.
    pub segment_ns: u64,
    /// Vtime from the root moment to the horizon, beyond which no branch runs, in nanoseconds.
    pub horizon_ns: u64,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Engine that executed the guests: `soft` or `kvm`. Exact engines give the same results, so a run can be resumed
    /// with another exact engine.
    #[serde(default = "soft")]
    pub engine: String,
    /// True if the engine was proved exact on its host. If false, results may depend on the host and differ between
    /// runs.
    #[serde(default = "proved")]
    pub exact: bool,
}

/// Returns the header of a world without nodes, in the current format, on the soft engine.
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

/// Returns the default engine of headers without the field `engine`.
fn soft() -> String {
    "soft".to_owned()
}

/// Returns the default of headers without the field `exact`. Their engine is the soft engine, which is exact on every
/// host.
fn proved() -> bool {
    true
}

/// Name of a strategy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StrategyName(pub String);

impl StrategyName {
    /// True if the strategy ignores earlier results. The share of branches that show a finding then does not depend on
    /// what the search found before.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.0 == StrategyKind::Uniform.name()
    }

    /// True for strategy `pct`: each fault plan gives the nodes random priorities, and frames of nodes with lower
    /// priorities arrive later.
    #[must_use]
    pub fn is_pct(&self) -> bool {
        self.0 == StrategyKind::Pct.name()
    }
}

/// The only field that every format version has.
#[derive(Deserialize)]
struct Version {
    schema_version: u32,
}

impl Header {
    /// Reads the header of a run directory.
    ///
    /// # Errors
    /// Returns an error if the header is missing or invalid, or has an unsupported format version.
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

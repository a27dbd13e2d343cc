//! The report as data: what the page shows, and what `everett report --data` prints.
//!
//! - `summary`: the exploration and its verdict; `world_name`: the name of its world
//! - `recordings`: timelines that were recorded; `logs`: logs of branches without a finding
//! - `properties`, and `unreached`: those that were never reached
//! - `finding`: findings with their scenes; `history`: older runs, and what became of their findings; `causality`: where
//!   findings were decided
//! - `tree`: figures of branches; `coverage`: growth, estimates, the matrix of faults and phases; `code`: executed code
//!
//! Not here: how the report looks (`crate::page`). `docs/report-data.md` describes every field.
//!
//! **Invariant.** All lists are bounded, whatever run directories hold: see [`limits`].

mod causality;
mod code;
mod coverage;
mod finding;
mod history;
pub mod limits;
mod logs;
mod properties;
mod recordings;
mod summary;
mod tree;
mod unreached;
mod world_name;

use std::collections::BTreeMap;

use crate::exploration::Report;
use everett_explorer::run::branches::Branches;
use everett_explorer::run::{Header, Merged};
use serde::Serialize;

pub use causality::{Causality, Jump, Point, Share};
pub use code::{Binary, Code, Edges, Function};
pub use coverage::{Cell, CoverageData, Growth, OneWay, Row};
pub use finding::{Finding, ShrunkPlan};
pub use history::{Gone, OlderRun, Status};
pub use logs::Log;
pub use properties::{Property, State};
pub use recordings::{Different, Recordings};
pub use summary::Summary;
pub(crate) use summary::confidence;
pub use tree::Tree;
pub use unreached::unreached;
pub use world_name::world_name;

use crate::findability::Terms;
use crate::scene::Scene;

/// Version of the format of the data.
pub const DATA_VERSION: u32 = 1;

/// A run directory that was read.
#[derive(Debug, Clone, Copy)]
pub struct Run<'r> {
    /// The folder, as commands name it.
    pub name: &'r str,
    /// Description of the exploration.
    pub header: &'r Header,
    /// Merged results.
    pub merged: &'r Merged,
}

/// Everything that a report is made of.
#[derive(Debug)]
pub struct Sources<'r> {
    /// The run.
    pub run: Run<'r>,
    /// Figures of its branches.
    pub branches: &'r Branches,
    /// Its summary.
    pub report: &'r Report,
    /// Older runs, the oldest first.
    pub older: &'r [Run<'r>],
    /// Kinds of faults that the world file enables; empty if it cannot be read, or has changed since.
    pub enabled: &'r [String],
    /// Regression files in the run directory, by the number of their finding, each with its file name.
    pub regressions: BTreeMap<u32, (String, serde_json::Value)>,
    /// Recorded timelines, by the number of their finding. They replace the evidence of the run directory.
    pub scenes: BTreeMap<u32, Scene>,
    /// Recorded timelines of branches without a finding, by branch.
    pub logs: BTreeMap<u64, Scene>,
    /// How the recording at the end of the exploration went, if it was asked for.
    pub recordings: Option<Recordings>,
    /// Causalities of findings, by the number of their finding.
    pub causalities: BTreeMap<u32, everett_explorer::causality::Causality>,
    /// Faults that begin on a branch, as lines of a plan, by branch. Branches may be missing.
    pub plans: BTreeMap<u64, Vec<serde_json::Value>>,
    /// Executed edges of code.
    pub code: Option<Code>,
    /// Parameters of the statistics.
    pub terms: Terms,
}

/// The report as data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Data {
    /// Version of the format: [`DATA_VERSION`].
    pub data_version: u32,
    /// The exploration, its size and its verdict.
    pub summary: Summary,
    /// All properties.
    pub properties: Vec<Property>,
    /// Findings of this run.
    pub findings: Vec<Finding>,
    /// Findings of older runs that this run does not show.
    pub gone: Vec<Gone>,
    /// Older runs, the oldest first.
    pub older: Vec<OlderRun>,
    /// Branches, as columns.
    pub tree: Tree,
    /// Logs of branches without a finding.
    pub logs: Vec<Log>,
    /// Coverage, estimates and gaps.
    pub coverage: CoverageData,
    /// Executed code, if edges were recorded.
    pub code: Option<Code>,
    /// What the report lacks because of a bound or a failure, a line each.
    pub missing: Vec<String>,
}

impl Data {
    /// Returns the data of a report.
    #[must_use]
    pub fn of(sources: &Sources<'_>) -> Data {
        let runs: Vec<Run<'_>> = sources.older.iter().copied().chain([sources.run]).collect();
        let findings = finding::all(sources, &runs);
        let gone = history::gone(sources, &runs);
        let properties = properties::all(sources, &runs);
        let mut missing = sources.report.missing.lines();
        missing.extend(limits::cut(sources));
        missing.extend(finding::shortened(sources, &findings));
        missing.extend(history::other_worlds(sources));
        Data {
            data_version: DATA_VERSION,
            summary: Summary::of(sources, &properties, &findings, &gone),
            properties,
            findings,
            gone,
            older: sources.older.iter().map(|run| OlderRun::of(run, &sources.run)).collect(),
            tree: Tree::of(sources),
            logs: logs::all(sources),
            coverage: CoverageData::of(sources),
            code: sources.code.clone(),
            missing,
        }
    }

    /// Returns the data as JSON on one line.
    ///
    /// # Errors
    /// Returns an error if serialization fails. No data is known to cause this.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

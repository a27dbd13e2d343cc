//! The report as data: what the page shows, and what `everett report --data` prints.
//!
//! - `causality`: results of searches for the step that decided a finding, i.e. the event that made it likely
//! - `code`: executed code
//! - `coverage`: growth, estimates, the matrix that counts which kinds of faults began in which *phase* (state of a
//!   node)
//! - `finding`: findings with their scenes (a scene has the events, messages and faults before a finding)
//! - `history`: older runs, and the status of findings
//! - `limits`: bounds of the data
//! - `logs`: logs of branches without a finding
//! - `properties`: results of all properties
//! - `reached_code`: functions and source lines that branches reached
//! - `recordings`: timelines that were recorded at the end of the exploration
//! - `summary`: the exploration and its verdict
//! - `tree`: parent, times, costs and faults of each branch, as columns of numbers
//! - `unreached`: properties that were never reached
//! - `world_name`: name of the world
//!
//! Not here: how the report looks (`crate::page`). `docs/report-data.md` describes every field.
//!
//! **Invariant.** All lists are bounded, whatever a run directory holds: see [`limits`].

mod causality;
mod code;
mod coverage;
mod finding;
mod history;
pub mod limits;
mod logs;
mod properties;
mod reached_code;
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
pub use reached_code::{FailingCode, ReachedCode};
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

/// Contents of a run directory, as far as a report needs them.
#[derive(Debug, Clone, Copy)]
pub struct Run<'r> {
    /// Path of the run directory, as the operator named it.
    pub name: &'r str,
    /// Header of the exploration.
    pub header: &'r Header,
    /// Merged results of the branches.
    pub merged: &'r Merged,
}

/// Inputs of a report.
#[derive(Debug)]
pub struct Sources<'r> {
    /// Run that the report is about.
    pub run: Run<'r>,
    /// Parent, times, costs and faults of each branch of the run.
    pub branches: &'r Branches,
    /// Summary of the run.
    pub report: &'r Report,
    /// Older runs, oldest first.
    pub older: &'r [Run<'r>],
    /// Kinds of faults that the world file enables. Empty if the file is unreadable or has changed since the
    /// exploration.
    pub enabled: &'r [String],
    /// Regression files in the run directory, with their file names. The key is the number of the finding.
    pub regressions: BTreeMap<u32, (String, serde_json::Value)>,
    /// Recorded timelines of findings. The key is the number of the finding. If a finding has a recorded timeline, the
    /// report shows it instead of the shorter evidence in the run directory.
    pub scenes: BTreeMap<u32, Scene>,
    /// Recorded timelines of branches without a finding. The key is the number of the branch.
    pub logs: BTreeMap<u64, Scene>,
    /// Outcome of recording at the end of the exploration. `None` if it was not requested.
    pub recordings: Option<Recordings>,
    /// Results of searches for the step that decided a finding. The key is the number of the finding.
    pub causalities: BTreeMap<u32, everett_explorer::causality::Causality>,
    /// Faults that begin on a branch, as lines of a fault plan. The key is the number of the branch. Branches may be
    /// missing.
    pub plans: BTreeMap<u64, Vec<serde_json::Value>>,
    /// Executed edges of code (branch instructions and their targets). `None` if no files of edges were given.
    pub code: Option<Code>,
    /// Functions and source lines that branches reached. `None` if they were not recorded.
    pub reached: Option<everett_explorer::reached_code::ReachedCode>,
    /// Parameters of the report's estimates, e.g. the confidence at which a bug counts as gone.
    pub terms: Terms,
}

/// Report as data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Data {
    /// Version of the format: [`DATA_VERSION`].
    pub data_version: u32,
    /// Exploration as a whole, with its size and verdict.
    pub summary: Summary,
    /// All properties with their results.
    pub properties: Vec<Property>,
    /// Findings of this run.
    pub findings: Vec<Finding>,
    /// Findings of older runs that this run does not show.
    pub gone: Vec<Gone>,
    /// Older runs, oldest first.
    pub older: Vec<OlderRun>,
    /// Parent, times, costs and faults of each branch, as columns of numbers.
    pub tree: Tree,
    /// Logs of branches without a finding.
    pub logs: Vec<Log>,
    /// Coverage, estimates and gaps.
    pub coverage: CoverageData,
    /// Executed code. `None` if no edges were recorded.
    pub code: Option<Code>,
    /// Functions of programs that branches reached. `None` if they were not recorded.
    pub reached_code: Option<ReachedCode>,
    /// Parts that the report lacks because of a bound or a failure, one line each.
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
            reached_code: ReachedCode::of(sources),
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

//! Reports of an exploration: findings, coverage and gaps, as JSON and Markdown.
//!
//! - `explored`: size of the exploration; `kind_coverage`: coverage and estimates of the unseen points;
//!   `rated_finding`: findings and their rates
//! - [`assertions`]: what became of the assertions of programs
//! - [`final_phases`]: their part of the cost; `thoroughness`: thoroughness of the exploration; `pct_guarantee`: the
//!   guarantee of random priorities; `commands`: results of test commands; `missing`: data that the report lacks
//!   because of a bound or a failure
//! - `figures` and `sparkline`: numbers for people; `span`: texts of guests in Markdown
//! - `markdown`: the report as text
//!
//! Not here: the data ([`everett_explorer::run`], [`everett_explorer::coverage`]), and the place where reports are written.
//!
//! **Invariants.**
//! - No decision of Everett depends on a report, so its figures may be floats.
//! - In Markdown, texts of worlds and guests are in code spans and blocks that they cannot leave, with control
//!   characters escaped.

pub mod assertions;
mod commands;
mod explored;
pub mod figures;
pub mod final_phases;
mod kind_coverage;
mod markdown;
mod missing;
mod pct_guarantee;
mod rated_finding;
mod span;
mod sparkline;
mod thoroughness;

use std::collections::BTreeSet;

use serde::Serialize;

pub use commands::TestCommand;
pub use explored::Explored;
pub use kind_coverage::{GrowthPoint, KindCoverage, KindFigures};
pub use missing::Missing;
pub use pct_guarantee::PctGuarantee;
pub use rated_finding::{Findable, Pace, RatedFinding};
pub use span::word;
pub use thoroughness::Thoroughness;

use assertions::{Asserted, asserted};
use everett_explorer::coverage::{Gaps, Kind};
use everett_explorer::run::{ExplorationEnd, Header, HistoryCount, Merged};

/// Format version of reports in JSON.
pub const REPORT_VERSION: u32 = 1;

/// Parts of a report that come neither from the header nor from records.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// Run directory, as commands name it.
    pub run: &'a str,
    /// End of the exploration, if it has ended.
    pub end: Option<&'a ExplorationEnd>,
    /// Number of branches that are recorded but not merged, because an earlier one is missing.
    pub waiting: u64,
    /// Gaps of coverage, if known.
    pub gaps: Option<&'a Gaps>,
    /// Names of the declared `sometimes` properties.
    pub sometimes: &'a BTreeSet<String>,
}

/// Report of an exploration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Format version: [`REPORT_VERSION`].
    pub report_version: u32,
    /// Run directory.
    pub run: String,
    /// Header of the exploration without its world, which is in the run directory.
    pub header: Header,
    /// End of the exploration. `None` if it is running or was killed.
    pub end: Option<ExplorationEnd>,
    /// Size of the exploration.
    pub explored: Explored,
    /// Thoroughness of the exploration.
    pub worth: Thoroughness,
    /// Findings.
    pub findings: Vec<RatedFinding>,
    /// Coverage by kind of points.
    pub coverage: Vec<KindCoverage>,
    /// Guarantee of random priorities. `None` if nodes have none.
    pub promise: Option<PctGuarantee>,
    /// Gaps of coverage, if known.
    pub gaps: Option<Gaps>,
    /// `sometimes` properties that were seen.
    pub sometimes: Vec<Sometimes>,
    /// Declared `sometimes` properties that were not seen.
    pub never: Vec<String>,
    /// Assertions of programs, in the order of names. Empty without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assertions: Vec<Asserted>,
    /// Commands of the test template. Empty without one.
    pub commands: Vec<TestCommand>,
    /// Operation histories of clients.
    pub histories: Histories,
    /// Data that this report lacks because of a bound or a failure.
    pub missing: Missing,
    /// [`Merged::digest`], in hexadecimal digits.
    pub digest: String,
    /// [`Merged::digest_at`] all branches.
    pub chain: String,
}

/// `sometimes` property that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sometimes {
    /// Name of the property.
    pub name: String,
    /// First choice on which it was seen.
    pub first: u64,
    /// Number of branches on which it was seen.
    pub branches: u64,
}

/// Operation histories of all branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Histories {
    /// Number of branches with a history.
    pub branches: u64,
    /// Number of these branches with a key whose verdict is unknown.
    pub branches_unknown: u64,
    /// Counts over all histories.
    pub count: HistoryCount,
}

impl Report {
    /// Creates the report of an exploration.
    #[must_use]
    pub fn of(header: &Header, merged: &Merged, about: &About<'_>) -> Report {
        let adaptive = !header.strategy.is_uniform();
        let totals = merged.totals();
        let seen = merged.sometimes();
        let chain = merged.digest_at(merged.branches());
        Report {
            report_version: REPORT_VERSION,
            run: about.run.to_owned(),
            header: Header { world: serde_json::Value::Null, ..header.clone() },
            end: about.end.cloned(),
            explored: Explored::of(merged),
            worth: Thoroughness::of(header, merged),
            findings: merged
                .findings()
                .iter()
                .map(|found| RatedFinding::of(merged, found, adaptive))
                .collect(),
            coverage: Kind::ALL
                .into_iter()
                .map(|kind| KindCoverage::of(merged.coverage(), kind))
                // Worlds without the SDK reach none of its points.
                .filter(|covered| !covered.figures.kind.is_of_sdk() || covered.figures.points > 0)
                .collect(),
            assertions: asserted(merged.coverage()),
            promise: PctGuarantee::of(header, merged),
            gaps: about.gaps.cloned(),
            sometimes: seen
                .iter()
                .map(|(name, s)| Sometimes { name: name.clone(), first: s.first, branches: s.branches })
                .collect(),
            never: about.sometimes.iter().filter(|name| !seen.contains_key(*name)).cloned().collect(),
            commands: TestCommand::all(merged),
            histories: Histories {
                branches: totals.histories,
                branches_unknown: totals.histories_unknown,
                count: totals.history,
            },
            missing: Missing::of(merged, about.waiting),
            digest: merged.digest().to_hex().to_string(),
            chain: chain.map(|hash| hash.to_hex().to_string()).unwrap_or_default(),
        }
    }

    /// Returns the report as JSON.
    ///
    /// # Errors
    /// Returns an error if serialization fails. No report is known to cause this.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// Returns the report as Markdown that is also readable as plain text. Long lists are cut.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::write(self)
    }
}

#[cfg(test)]
mod tests;

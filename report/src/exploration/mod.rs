//! Reports of an exploration as JSON and Markdown: findings, coverage and gaps.
//!
//! - [`assertions`]: verdicts on assertions of programs
//! - `commands`: results of test commands
//! - `explored`: number of branches, explored time and cost
//! - `figures`: numbers formatted for people
//! - [`final_phases`]: cost of waiting until the world is at rest, and of checks
//! - `kind_coverage`: coverage for each kind of point, with estimates of how many points are unreached
//! - `markdown`: the report as text
//! - `missing`: data that the report lacks because of a bound or a failure
//! - `pct_guarantee`: how likely strategy `pct`, which draws random priorities, finds a bug
//! - `rated_finding`: findings and their rates
//! - `span`: puts texts from guests into Markdown so that they stay plain text
//! - `sparkline`: draws a small curve as text
//! - `thoroughness`: how much the exploration proves if it finds nothing
//!
//! Not here: the data ([`everett_explorer::run`], [`everett_explorer::coverage`]), and the files in which reports are
//! stored.
//!
//! **Invariants.**
//! - No decision of Everett depends on a report, so its numbers may be floats.
//! - In Markdown, text from worlds and guests is in code spans and blocks that it cannot leave, with control
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
use everett_explorer::probe::recorded;
use everett_explorer::run::{ExplorationEnd, Header, HistoryCount, Merged};

/// Format version of reports in JSON.
pub const REPORT_VERSION: u32 = 1;

/// Inputs of a report besides the exploration's header and the merged results of its branches.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// Run directory, as the operator named it.
    pub run: &'a str,
    /// End of the exploration, if it has ended.
    pub end: Option<&'a ExplorationEnd>,
    /// Number of branches that are recorded but not merged, because an earlier branch is missing.
    pub waiting: u64,
    /// Gaps of coverage, e.g. faults that never began in some phase. `None` if the gaps are unknown.
    pub gaps: Option<&'a Gaps>,
    /// Names of the declared `sometimes` properties, i.e. conditions that should hold on at least one branch.
    pub sometimes: &'a BTreeSet<String>,
}

/// Report of an exploration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Format version: [`REPORT_VERSION`].
    pub report_version: u32,
    /// Run directory, as the operator named it.
    pub run: String,
    /// Header of the exploration, without its world, which is in the run directory.
    pub header: Header,
    /// End of the exploration. `None` if it is running or was killed.
    pub end: Option<ExplorationEnd>,
    /// Size of the exploration.
    pub explored: Explored,
    /// Thoroughness of the exploration.
    pub worth: Thoroughness,
    /// Findings with their rates.
    pub findings: Vec<RatedFinding>,
    /// Coverage for each kind of points.
    pub coverage: Vec<KindCoverage>,
    /// Lower bound on the probability that random priorities find a bug. `None` if the strategy is not `pct`.
    pub promise: Option<PctGuarantee>,
    /// Gaps of coverage. `None` if they are unknown.
    pub gaps: Option<Gaps>,
    /// `sometimes` properties that a branch showed.
    pub sometimes: Vec<Sometimes>,
    /// Declared `sometimes` properties that no branch showed.
    pub never: Vec<String>,
    /// Assertions of programs, ordered by name. Empty without the SDK.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assertions: Vec<Asserted>,
    /// Commands of the test template. Empty without a test template.
    pub commands: Vec<TestCommand>,
    /// Operation histories of clients.
    pub histories: Histories,
    /// Data that this report lacks because of a bound or a failure.
    pub missing: Missing,
    /// Digest of the merged results ([`Merged::digest`]), in hexadecimal digits.
    pub digest: String,
    /// Digest of the records of all branches ([`Merged::digest_at`]), in hexadecimal digits.
    pub chain: String,
}

/// `sometimes` property that a branch showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sometimes {
    /// Name of the property.
    pub name: String,
    /// Number of the first branch that showed the property.
    pub first: u64,
    /// Number of branches that showed the property.
    pub branches: u64,
}

/// Operation histories of all branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Histories {
    /// Number of branches with a history.
    pub branches: u64,
    /// Number of branches with an undecided history: the check of at least one key exceeded its maximum number of steps
    /// or amount of memory.
    pub branches_unknown: u64,
    /// Counts of operations over all histories.
    pub count: HistoryCount,
}

impl Report {
    /// Creates the report of an exploration.
    #[must_use]
    pub fn of(header: &Header, merged: &Merged, about: &About<'_>) -> Report {
        let adaptive = !header.strategy.is_uniform();
        let totals = merged.totals();
        let seen = merged.sometimes();
        // Hits of these probes are noted, but nobody wants them.
        let only_judged: Vec<&str> =
            recorded(&header.world).filter(|(_, probe)| !probe.is_sometimes).map(|(name, _)| name).collect();
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
                // Worlds without the SDK reach none of the SDK's points.
                .filter(|covered| !covered.figures.kind.is_of_sdk() || covered.figures.points > 0)
                .collect(),
            assertions: asserted(merged.coverage()),
            promise: PctGuarantee::of(header, merged),
            gaps: about.gaps.cloned(),
            sometimes: seen
                .iter()
                .filter(|(name, _)| !only_judged.contains(&name.as_str()))
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

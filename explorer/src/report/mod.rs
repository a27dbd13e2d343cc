//! What an exploration found, what it covered and what it did not, to be read.
//!
//! - `explored`: how much was run; `covered`: coverage and what may be left; `found`: findings and how findable they are
//! - `worth`: how thorough it was; `promise`: what random priorities promise; `commands`: what became of test commands; `missing`: what the report cannot tell since a bound was met
//! - `figures` and `sparkline`: numbers for people; `span`: texts of guests in Markdown
//! - `markdown`: the report as text
//!
//! Not here: what the numbers are made of ([`crate::run`], [`crate::coverage`]), and where reports are written.
//!
//! **Invariants.**
//! - A report decides nothing, so its figures may be floats.
//! - Texts of worlds are told in code spans and blocks that they cannot leave, with controls escaped.

mod commands;
mod covered;
mod explored;
mod figures;
mod found;
mod markdown;
mod missing;
mod promise;
mod span;
mod sparkline;
mod worth;

use std::collections::BTreeSet;

use serde::Serialize;

pub use commands::TestCommand;
pub use covered::{CoveredKind, GrowthPoint};
pub use explored::Explored;
pub use found::{Findable, Found, Pace};
pub use missing::Missing;
pub use promise::Promise;
pub use worth::Worth;

use crate::coverage::{Gaps, Kind};
use crate::run::{End, Header, HistoryCount, Merged};

/// The format of reports in JSON.
pub const REPORT_VERSION: u32 = 1;

/// What a report tells that neither a header nor records say.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The run directory, as commands name it.
    pub run: &'a str,
    /// How the exploration ended, if it did.
    pub end: Option<&'a End>,
    /// Branches that are recorded and could not be merged yet, since an earlier one is missing.
    pub waiting: u64,
    /// What was not covered, if that is known.
    pub gaps: Option<&'a Gaps>,
    /// The `sometimes` properties that are declared.
    pub sometimes: &'a BTreeSet<String>,
}

/// What an exploration came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The format: [`REPORT_VERSION`].
    pub report_version: u32,
    /// The run directory.
    pub run: String,
    /// What was explored. The world itself is left to the run directory.
    pub header: Header,
    /// How it ended; nothing if it goes on, or was killed.
    pub end: Option<End>,
    /// How much was run.
    pub explored: Explored,
    /// How thorough it was.
    pub worth: Worth,
    /// What was found.
    pub findings: Vec<Found>,
    /// What was covered, by kind.
    pub coverage: Vec<CoveredKind>,
    /// What random priorities promise, if nodes have some.
    pub promise: Option<Promise>,
    /// What was not, if that is known.
    pub gaps: Option<Gaps>,
    /// The `sometimes` properties that were seen.
    pub sometimes: Vec<Sometimes>,
    /// Declared `sometimes` properties that were not.
    pub never: Vec<String>,
    /// The commands of the test template, if there is one.
    pub commands: Vec<TestCommand>,
    /// What clients asked for and were told.
    pub histories: Histories,
    /// What is not in this report since a bound was met.
    pub missing: Missing,
    /// [`Merged::digest`], in hexadecimal digits.
    pub digest: String,
    /// [`Merged::digest_at`] all branches.
    pub chain: String,
}

/// A `sometimes` property that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sometimes {
    /// Its name.
    pub name: String,
    /// The first choice that led there.
    pub first: u64,
    /// In how many branches.
    pub branches: u64,
}

/// All operation histories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Histories {
    /// How many branches have one.
    pub branches: u64,
    /// How many of these have keys of which nothing is known.
    pub branches_unknown: u64,
    /// All together.
    pub count: HistoryCount,
}

impl Report {
    /// What is known of an exploration.
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
            worth: Worth::of(header, merged),
            findings: merged.findings().iter().map(|found| Found::of(merged, found, adaptive)).collect(),
            coverage: Kind::ALL.into_iter().map(|kind| CoveredKind::of(merged.coverage(), kind)).collect(),
            promise: Promise::of(header, merged),
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

    /// All of it as JSON.
    ///
    /// # Errors
    /// None that a report has: the library's.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// All of it as Markdown that reads well as it is, long lists cut.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::write(self)
    }
}

#[cfg(test)]
mod tests;

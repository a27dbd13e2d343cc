//! Settings of the `[faults]` table that are common to all kinds, and errors of the table.

use std::ops::RangeInclusive;

use everett_fault::{Fault, FaultError, FaultKind, PPM};
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use crate::plan::limits::{AT_NS_MAX, FOR_NS_MAX};
use crate::plan::names::Names;
use crate::plan::problem::Problem;

use super::kinds::Common;
pub use super::kinds::FaultConfig;
use super::numbers::chance;
use super::span::{Bounded, Span};

/// Bounds of the mean time between faults of a kind, in nanoseconds: 100 ms to 1,000 days.
pub(super) const EVERY_NS: RangeInclusive<u64> = 100_000_000..=86_400_000_000_000_000;
/// Maximum number of draws of a swarm, which end when at least one kind is on. If there is only one kind, all draws
/// fail with a probability of 2^-64.
const SWARM_TRIES: usize = 64;
/// Bounds of the time between the beginnings of quiet periods, in nanoseconds: 10 s to a day.
pub(super) const QUIET_EVERY_NS: RangeInclusive<u64> = 10_000_000_000..=AT_NS_MAX;

/// Quiet periods: everything heals and no fault starts for a while, so that checks that need calm can run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Quiet {
    /// True if there are quiet periods.
    pub enabled: bool,
    /// Time from the beginning of one period to that of the next. The first begins this long after `start`.
    pub every: Span,
    /// Length of a period.
    #[serde(rename = "for")]
    pub lasts: Span,
}

impl Default for Quiet {
    fn default() -> Quiet {
        Quiet { enabled: true, every: Span::s(60), lasts: Span::s(10) }
    }
}

/// Error of the `[faults]` table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct ConfigError {
    /// Key, such as `partition.for`.
    pub key: String,
    /// Problem with its value.
    pub what: ConfigProblem,
}

/// Problem with a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigProblem {
    /// A value is too small or too large.
    #[error("must be from {least} to {most}, not {found}")]
    Bounds {
        /// Value that was found.
        found: String,
        /// Minimum.
        least: String,
        /// Maximum.
        most: String,
    },
    /// The first value of a range is above the second.
    #[error("the first of the two must not be above the second")]
    Range,
    /// A quiet period lasts until the next one begins.
    #[error("quiet periods must end before the next one begins")]
    AlwaysQuiet,
    /// A node does not exist.
    #[error(transparent)]
    Name(#[from] Problem),
    /// A command is invalid.
    #[error(transparent)]
    Command(#[from] FaultError),
}

impl FaultConfig {
    /// Checks the table against the names of a world. Drawing from an invalid table is safe: impossible faults are left
    /// out.
    ///
    /// # Errors
    /// Returns all errors of the table.
    pub fn check(&self, names: &Names) -> Result<(), Vec<ConfigError>> {
        let mut found = Vec::new();
        let mut tell = |key: &str, what: Result<(), ConfigProblem>| {
            found.extend(what.err().map(|what| ConfigError { key: key.to_owned(), what }));
        };
        tell("start", self.start.check(&(0..=AT_NS_MAX)));
        if self.quiet.enabled {
            tell("quiet.every", self.quiet.every.check(&QUIET_EVERY_NS));
            tell("quiet.for", self.quiet.lasts.check(&(1..=FOR_NS_MAX)));
            let apart = self.quiet.lasts < self.quiet.every;
            tell("quiet.for", if apart { Ok(()) } else { Err(ConfigProblem::AlwaysQuiet) });
        }
        tell("calm_end", self.calm_end.check(&(0..=FOR_NS_MAX)));
        tell("recovery", self.recovery.check(&(0..=FOR_NS_MAX)));
        for kind in self.kinds() {
            kind.check(&mut found);
            let common = kind.common();
            for node in common.nodes.into_iter().flatten() {
                if let Err(what) = names.check_node(node) {
                    found.push(ConfigError {
                        key: format!("{}.nodes", common.kind.name()),
                        what: what.into(),
                    });
                }
            }
        }
        for (i, argv) in self.command.argv.iter().enumerate() {
            let command = Fault::Command { node: String::new(), argv: argv.clone() };
            let key = format!("command.argv[{i}]");
            found.extend(
                command.problems().into_iter().map(|p| ConfigError { key: key.clone(), what: p.what.into() }),
            );
        }
        if found.is_empty() { Ok(()) } else { Err(found) }
    }

    /// Returns true if faults of this kind are drawn.
    pub(super) fn draws(&self, common: &Common<'_>) -> bool {
        common.enabled && self.only.as_ref().is_none_or(|only| only.contains(&common.kind))
    }

    /// Returns the table with a random subset of its kinds. Each kind is on with a probability of 1/2, but at least one
    /// is on (swarm testing: Groce et al., ISSTA 2012).
    #[must_use]
    pub fn swarm(&self, rng: &mut ChaCha20Rng) -> FaultConfig {
        let kinds = self.kinds().into_iter().map(|kind| kind.common());
        let drawn: Vec<FaultKind> = kinds.filter(|kind| self.draws(kind)).map(|kind| kind.kind).collect();
        let only = (0..SWARM_TRIES)
            .map(|_| drawn.iter().copied().filter(|_| chance(rng, PPM / 2)).collect::<Vec<_>>())
            .find(|kinds| !kinds.is_empty());
        FaultConfig { only: Some(only.unwrap_or(drawn)), ..self.clone() }
    }

    /// Returns the kinds of which faults are drawn.
    pub fn enabled(&self) -> impl Iterator<Item = FaultKind> {
        self.kinds()
            .into_iter()
            .map(|kind| kind.common())
            .filter(|kind| self.draws(kind))
            .map(|kind| kind.kind)
    }

    /// Returns the maximum number of nodes that may be down at once.
    pub(super) fn down_max(&self, nodes: usize) -> usize {
        let minority = (nodes.saturating_sub(1) / 2).max(1);
        self.max_down.map_or(minority, |most| usize::try_from(most).unwrap_or(usize::MAX))
    }
}

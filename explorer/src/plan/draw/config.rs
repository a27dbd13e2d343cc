//! What of the `[faults]` table is not about one kind, and what can be wrong with the table.

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

/// The mean time between faults of a kind, in nanoseconds: 100 ms to 1,000 days.
pub(super) const EVERY_NS: RangeInclusive<u64> = 100_000_000..=86_400_000_000_000_000;
/// How often kinds are drawn until one of them is on: a single one is off so often with a probability of 2^-64.
const SWARM_TRIES: usize = 64;
/// The time between quiet periods, in nanoseconds: 10 s to a day.
pub(super) const QUIET_EVERY_NS: RangeInclusive<u64> = 10_000_000_000..=AT_NS_MAX;

/// Quiet periods: everything heals, and nothing is done for a while, so that checks that need calm can run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Quiet {
    /// Whether there are any.
    pub enabled: bool,
    /// The time from the beginning of one to that of the next; the first is that long after `start`.
    pub every: Span,
    /// How long each is.
    #[serde(rename = "for")]
    pub lasts: Span,
}

impl Default for Quiet {
    fn default() -> Quiet {
        Quiet { enabled: true, every: Span::s(60), lasts: Span::s(10) }
    }
}

/// Something that is wrong with the table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct ConfigError {
    /// Where, such as `partition.for`.
    pub key: String,
    /// What.
    pub what: ConfigProblem,
}

/// What can be wrong with a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigProblem {
    /// Too small or too large.
    #[error("must be from {least} to {most}, not {found}")]
    Bounds {
        /// What it is.
        found: String,
        /// The least that is allowed.
        least: String,
        /// The most that is allowed.
        most: String,
    },
    /// A range with nothing in it.
    #[error("the first of the two must not be above the second")]
    Range,
    /// Quiet periods without anything between them.
    #[error("quiet periods must end before the next one begins")]
    AlwaysQuiet,
    /// A node that does not exist.
    #[error(transparent)]
    Name(#[from] Problem),
    /// A command that is none.
    #[error(transparent)]
    Command(#[from] FaultError),
}

impl FaultConfig {
    /// Whether the table makes sense in a world. Drawing from one that does not is safe: what is impossible is left out.
    ///
    /// # Errors
    /// All that is wrong with it.
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

    /// Whether faults of a kind are drawn.
    pub(super) fn draws(&self, common: &Common<'_>) -> bool {
        common.enabled && self.only.as_ref().is_none_or(|only| only.contains(&common.kind))
    }

    /// The same with each kind on or off, one as likely as the other, but never all off (swarm testing: Groce et al., ISSTA 2012).
    #[must_use]
    pub fn swarm(&self, rng: &mut ChaCha20Rng) -> FaultConfig {
        let kinds = self.kinds().into_iter().map(|kind| kind.common());
        let drawn: Vec<FaultKind> = kinds.filter(|kind| self.draws(kind)).map(|kind| kind.kind).collect();
        let only = (0..SWARM_TRIES)
            .map(|_| drawn.iter().copied().filter(|_| chance(rng, PPM / 2)).collect::<Vec<_>>())
            .find(|kinds| !kinds.is_empty());
        FaultConfig { only: Some(only.unwrap_or(drawn)), ..self.clone() }
    }

    /// The kinds that are drawn.
    pub fn enabled(&self) -> impl Iterator<Item = FaultKind> {
        self.kinds()
            .into_iter()
            .map(|kind| kind.common())
            .filter(|kind| self.draws(kind))
            .map(|kind| kind.kind)
    }

    /// How many nodes may be down at once.
    pub(super) fn down_max(&self, nodes: usize) -> usize {
        let minority = (nodes.saturating_sub(1) / 2).max(1);
        self.max_down.map_or(minority, |most| usize::try_from(most).unwrap_or(usize::MAX))
    }
}

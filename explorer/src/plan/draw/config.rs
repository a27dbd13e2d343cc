//! The `[faults]` table as a whole: its check, and which kinds of faults are drawn.

use chacha20::ChaCha20Rng;
use everett_fault::{Fault, FaultKind, GuestFault, PPM};

use crate::plan::limits::{AT_NS_MAX, FOR_NS_MAX};
use crate::plan::names::Names;

use super::error::{ConfigError, ConfigProblem};
use super::frequency::QUIET_EVERY_NS;
use super::kinds::{Common, FaultConfig};
use super::numbers::chance;
use super::span::Bounded;

/// Maximum number of random subsets that [`FaultConfig::swarm`] draws until a subset has at least one kind. With a
/// single kind, all draws fail with a probability of 2^-64.
const SWARM_TRIES: usize = 64;

impl FaultConfig {
    /// Checks the table against the names of a world. Drawing from an invalid table is safe: impossible faults are
    /// skipped.
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
            let command =
                Fault::Guest { node: String::new(), fault: GuestFault::Command { argv: argv.clone() } };
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

    /// Returns the table restricted to a random subset of its kinds (swarm testing: Groce et al., ISSTA 2012). Each
    /// kind is on with a probability of 1/2, and at least one kind is on.
    #[must_use]
    pub fn swarm(&self, rng: &mut ChaCha20Rng) -> FaultConfig {
        let kinds = self.kinds().into_iter().map(|kind| kind.common());
        let drawn: Vec<FaultKind> = kinds.filter(|kind| self.draws(kind)).map(|kind| kind.kind).collect();
        let only = (0..SWARM_TRIES)
            .map(|_| drawn.iter().copied().filter(|_| chance(rng, PPM / 2)).collect::<Vec<_>>())
            .find(|kinds| !kinds.is_empty());
        FaultConfig { only: Some(only.unwrap_or(drawn)), ..self.clone() }
    }

    /// Returns the kinds of faults that are drawn.
    pub fn enabled(&self) -> impl Iterator<Item = FaultKind> {
        self.kinds()
            .into_iter()
            .map(|kind| kind.common())
            .filter(|kind| self.draws(kind))
            .map(|kind| kind.kind)
    }

    /// Returns the maximum number of nodes that may be off, paused or recovering at once.
    pub(super) fn down_max(&self, nodes: usize) -> usize {
        let minority = (nodes.saturating_sub(1) / 2).max(1);
        self.max_down.map_or(minority, |most| usize::try_from(most).unwrap_or(usize::MAX))
    }
}

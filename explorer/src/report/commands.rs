//! What became of a test template's commands.

use serde::Serialize;

use super::figures::counted;
use crate::composer::Counts;
use crate::run::Merged;

/// A command of a test template over all branches.
///
/// One that runs where timelines fork can end on each of them, so that ends need not be fewer than starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TestCommand {
    /// Its name.
    pub name: String,
    /// How often it was started, and how it ended by itself.
    #[serde(flatten)]
    pub counts: Counts,
    /// The first choice on which it succeeded, if there is one.
    pub first: Option<u64>,
    /// On how many branches it succeeded.
    pub branches: u64,
}

impl TestCommand {
    /// Those of an exploration, by name; none without a test template.
    #[must_use]
    pub fn all(merged: &Merged) -> Vec<TestCommand> {
        let commands = merged.commands().all().map(|(name, counts, seen)| TestCommand {
            name: name.to_owned(),
            counts,
            first: seen.map(|seen| seen.first),
            branches: seen.map_or(0, |seen| seen.branches),
        });
        commands.collect()
    }

    /// Whether it was started or ended, and never succeeded.
    #[must_use]
    pub fn is_fruitless(&self) -> bool {
        self.counts.succeeded == 0 && !self.is_unused()
    }

    /// Whether it was never started.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.counts == Counts::default()
    }

    /// How often it did what, for one that never succeeded.
    #[must_use]
    pub fn counts_told(&self) -> String {
        let Counts { started, failed, .. } = self.counts;
        let failed = match failed {
            0 => "never ended by itself".to_owned(),
            failed => format!("failed {}", counted(failed, "time", "times")),
        };
        format!("started {}, {failed}", counted(started, "time", "times"))
    }
}

//! Results of a test template's commands.

use serde::Serialize;

use super::figures::counted;
use everett_explorer::composer::Counts;
use everett_explorer::run::Merged;

/// Command of a test template, over all branches.
///
/// A command that runs at a fork can end once on each of the children, so there can be more ends than starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TestCommand {
    /// Name of the command.
    pub name: String,
    /// Number of starts, and of ends by result.
    #[serde(flatten)]
    pub counts: Counts,
    /// First choice on which the command succeeded.
    pub first: Option<u64>,
    /// Number of branches on which it succeeded.
    pub branches: u64,
}

impl TestCommand {
    /// Returns the commands of an exploration, by name. Empty without a test template.
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

    /// Returns true if the command was started or ended, but never succeeded.
    #[must_use]
    pub fn is_fruitless(&self) -> bool {
        self.counts.succeeded == 0 && !self.is_unused()
    }

    /// Returns true if the command was never started.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.counts == Counts::default()
    }

    /// Returns a text with the numbers of starts and failures of a command that never succeeded.
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

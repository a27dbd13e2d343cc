//! Results of a test template's commands. A test template is a folder of programs in the guests, whose names say when
//! Everett runs them.

use serde::Serialize;

use super::figures::counted;
use everett_explorer::composer::Counts;
use everett_explorer::run::Merged;

/// Results of a command of a test template, over all branches.
///
/// There can be more ends than starts: a command that runs at a fork can end on each branch after the fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TestCommand {
    /// Name of the command.
    pub name: String,
    /// Number of starts, and number of ends for each result.
    #[serde(flatten)]
    pub counts: Counts,
    /// Number of the first branch on which the command succeeded. `None` if it never succeeded.
    pub first: Option<u64>,
    /// Number of branches on which the command succeeded.
    pub branches: u64,
}

impl TestCommand {
    /// Returns the commands of an exploration, ordered by name. Empty without a test template.
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

    /// True if the command ran but never succeeded.
    #[must_use]
    pub fn is_fruitless(&self) -> bool {
        self.counts.succeeded == 0 && !self.is_unused()
    }

    /// True if the command never started.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.counts == Counts::default()
    }

    /// Describes the starts and failures of a command that never succeeded.
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

//! Results of a test template's commands over all branches. The report lists the commands that never succeeded.

use std::collections::BTreeMap;

use super::super::record::Record;
use super::Seen;
use crate::composer::{Counts, Tally};

/// Results of a test template's commands. A template has at most `COMMANDS_MAX` commands. The record (stored result) of
/// a branch is untrusted and may name more commands. Commands beyond `COMMANDS_MAX` are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commands {
    tally: Tally,
    succeeded: BTreeMap<String, Seen>,
}

impl Commands {
    pub(super) fn add(&mut self, record: &Record) {
        self.tally.merge(&record.commands);
        for (name, counts) in record.commands.commands() {
            if counts.succeeded > 0 && self.tally.get(name).is_some() {
                let unseen = Seen { first: record.choice, branches: 0 };
                self.succeeded.entry(name.to_owned()).or_insert(unseen).branches += 1;
            }
        }
    }

    /// Returns all commands by name, including commands that never started. For each command, returns its counts. If
    /// the command succeeded on a branch, also returns the first such branch and the number of such branches.
    pub fn all(&self) -> impl Iterator<Item = (&str, Counts, Option<Seen>)> {
        self.tally.commands().map(|(name, counts)| (name, counts, self.succeeded.get(name).copied()))
    }
}

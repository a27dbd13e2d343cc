//! What became of a test template's commands on all branches: each is to succeed at least once.

use std::collections::BTreeMap;

use super::super::record::Record;
use super::Seen;
use crate::composer::{Counts, Tally};

/// What became of a test template's commands, of which there are as many as a template has at the most.
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

    /// All of them by name, those that were never started among them, and where each succeeded if it did.
    pub fn all(&self) -> impl Iterator<Item = (&str, Counts, Option<Seen>)> {
        self.tally.commands().map(|(name, counts)| (name, counts, self.succeeded.get(name).copied()))
    }
}

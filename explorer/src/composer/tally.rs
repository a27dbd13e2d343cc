//! Counts of the commands of a test template (a folder of executables) and of their results. Two built-in properties
//! use the counts: each command succeeds at least once, and no command ever fails.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::limits::COMMANDS_MAX;
use super::prefix::Prefix;
use super::template::{Command, Template, TemplateError, prefix_of};

/// Counts of one command: its starts, and its ends by result. A command that was killed or lost with its node counts
/// only as started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Number of starts.
    pub started: u64,
    /// Number of exits with status 0.
    pub succeeded: u64,
    /// Number of exits with another status.
    pub failed: u64,
}

/// Counts of starts and results for each command of a template, including commands that never started.
///
/// A timeline that is stored and continued consists of pieces, and each piece has its own tally. A command may start in
/// one piece and end in a later one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, Counts>")]
pub struct Tally(BTreeMap<String, Counts>);

impl Tally {
    /// Creates a tally in which all counts are 0.
    #[must_use]
    pub fn new(template: &Template) -> Tally {
        let names = template.commands().iter().map(Command::name);
        Tally(names.map(|name| (name.to_owned(), Counts::default())).collect())
    }

    /// Adds the counts of another piece or timeline of the same template. The sums do not depend on the order of the
    /// calls. Names beyond the maximum number of commands are ignored.
    pub fn merge(&mut self, other: &Tally) {
        for (name, more) in &other.0 {
            if self.0.len() < COMMANDS_MAX || self.0.contains_key(name) {
                let counts = self.0.entry(name.clone()).or_default();
                counts.started = counts.started.saturating_add(more.started);
                counts.succeeded = counts.succeeded.saturating_add(more.succeeded);
                counts.failed = counts.failed.saturating_add(more.failed);
            }
        }
    }

    /// Returns the counts since an earlier point of the same timeline. `earlier` has the counts at that point.
    #[must_use]
    pub fn since(&self, earlier: &Tally) -> Tally {
        let since = |(name, counts): (&String, &Counts)| {
            let before = earlier.get(name).unwrap_or_default();
            let counts = Counts {
                started: counts.started.saturating_sub(before.started),
                succeeded: counts.succeeded.saturating_sub(before.succeeded),
                failed: counts.failed.saturating_sub(before.failed),
            };
            (name.clone(), counts)
        };
        Tally(self.0.iter().map(since).collect())
    }

    /// Returns the counts of a command, or `None` if the template lacks the command.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Counts> {
        self.0.get(name).copied()
    }

    /// Returns all commands by name, with their counts.
    pub fn commands(&self) -> impl Iterator<Item = (&str, Counts)> {
        self.0.iter().map(|(name, counts)| (name.as_str(), *counts))
    }

    /// Returns the commands that never succeeded. Every command should succeed at least once.
    pub fn never_succeeded(&self) -> impl Iterator<Item = (&str, Counts)> {
        self.commands().filter(|(_, counts)| counts.succeeded == 0)
    }

    /// Returns the commands that failed at least once. No command should fail.
    pub fn ever_failed(&self) -> impl Iterator<Item = (&str, Counts)> {
        self.commands().filter(|(_, counts)| counts.failed > 0)
    }

    pub(super) fn start(&mut self, command: &Command) {
        if let Some(counts) = self.0.get_mut(command.name()) {
            counts.started = counts.started.saturating_add(1);
        }
    }

    pub(super) fn end(&mut self, command: &Command, success: bool) {
        if let Some(counts) = self.0.get_mut(command.name()) {
            let count = if success { &mut counts.succeeded } else { &mut counts.failed };
            *count = count.saturating_add(1);
        }
    }
}

impl TryFrom<BTreeMap<String, Counts>> for Tally {
    type Error = TemplateError;

    fn try_from(counts: BTreeMap<String, Counts>) -> Result<Tally, TemplateError> {
        for (number, name) in counts.keys().enumerate() {
            if prefix_of(name)? == Prefix::Helper {
                return Err(TemplateError::NoPrefix(name.clone()));
            }
            if number >= COMMANDS_MAX {
                return Err(TemplateError::TooManyCommands(name.clone()));
            }
        }
        Ok(Tally(counts))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tallies() -> impl Strategy<Value = Tally> {
        let counts = (0u64..9, 0u64..9, prop_oneof![0u64..9, Just(u64::MAX)]);
        let counts = counts.prop_map(|(started, succeeded, failed)| Counts { started, succeeded, failed });
        prop::collection::btree_map("anytime_[a-e]", counts, 0..5).prop_map(Tally)
    }

    proptest! {
        #[test]
        fn the_order_of_merging_does_not_matter(a in tallies(), b in tallies(), c in tallies()) {
            let merged = |all: [&Tally; 3]| all.iter().fold(Tally::default(), |mut sum, tally| {
                sum.merge(tally);
                sum
            });
            let sum = merged([&a, &b, &c]);
            prop_assert_eq!(&merged([&c, &a, &b]), &sum);
            for (name, counts) in sum.commands() {
                let each = [&a, &b, &c].map(|tally| tally.get(name).unwrap_or_default().started);
                prop_assert_eq!(counts.started, each.iter().sum::<u64>());
            }
        }

        #[test]
        fn since_returns_the_later_counts(a in tallies(), b in tallies()) {
            let mut both = a.clone();
            both.merge(&b);
            let later = both.since(&a);
            for (name, counts) in later.commands() {
                // Counts saturate at the highest number.
                let more = b.get(name).unwrap_or_default();
                prop_assert_eq!((counts.started, counts.succeeded), (more.started, more.succeeded));
                prop_assert!(counts.failed == more.failed || both.get(name).unwrap().failed == u64::MAX);
            }
            prop_assert!(both.commands().map(|(name, _)| name).eq(later.commands().map(|(name, _)| name)));
        }

        #[test]
        fn a_tally_survives_storage(tally in tallies()) {
            let bytes = postcard::to_stdvec(&tally).unwrap();
            prop_assert_eq!(&postcard::from_bytes::<Tally>(&bytes).unwrap(), &tally);
        }
    }

    #[test]
    fn a_tally_has_only_valid_commands() {
        let read = |json: &str| serde_json::from_str::<Tally>(json).map_err(|error| error.to_string());
        let counts = r#"{"started":3,"succeeded":1,"failed":2}"#;
        let tally = read(&format!(r#"{{"anytime_a":{counts}}}"#)).unwrap();
        assert_eq!(tally.ever_failed().count(), 1);
        assert_eq!(tally.never_succeeded().count(), 0);
        for name in ["helper_a", "a", ""] {
            assert!(read(&format!(r#"{{"{name}":{counts}}}"#)).is_err(), "{name}");
        }
        let many = |count| {
            (0..count).map(|i| (format!("anytime_{i}"), Counts::default())).collect::<BTreeMap<_, _>>()
        };
        assert!(Tally::try_from(many(COMMANDS_MAX)).is_ok());
        assert!(Tally::try_from(many(COMMANDS_MAX + 1)).is_err());
        let mut full = Tally::try_from(many(COMMANDS_MAX)).unwrap();
        full.merge(&tally);
        assert_eq!((full.commands().count(), full.get("anytime_a")), (COMMANDS_MAX, None));
    }
}

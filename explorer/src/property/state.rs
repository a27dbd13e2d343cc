//! What a child timeline inherits from its parent.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::excuse::Excuses;
use super::limits::{HITS_MAX, HITS_OF_PROPERTY_MAX};

/// All that judging depends on of what was before.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeState {
    pub(super) excuses: Excuses,
    /// By property, the signatures that were told.
    had: BTreeMap<String, BTreeSet<String>>,
    /// How many hits were not told for want of room.
    beyond: u64,
    /// Properties of which one timeline suffices, and which this one has shown.
    pub(super) seen: BTreeSet<String>,
    /// The calm that has begun, until the timeline ends.
    pub(super) calm: Option<Calm>,
}

/// The time after all faults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Calm {
    /// Its beginning, in nanoseconds of vtime.
    pub(super) since_ns: u64,
    /// Properties whose lines have come.
    pub(super) came: BTreeSet<String>,
}

impl JudgeState {
    /// The names of properties, of those that some timeline must show, that this one has shown.
    pub fn seen(&self) -> impl Iterator<Item = &str> {
        self.seen.iter().map(String::as_str)
    }

    /// How often something hit that was neither told before nor is told: beyond the bounds, and not told apart.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Whether a hit is to be told, which it is once.
    pub(super) fn tells(&mut self, property: &str, signature: &str) -> bool {
        let had = self.had.get(property);
        if had.is_some_and(|had| had.contains(signature)) {
            return false;
        }
        let all: usize = self.had.values().map(BTreeSet::len).sum();
        if had.map_or(0, BTreeSet::len) >= HITS_OF_PROPERTY_MAX || all >= HITS_MAX {
            self.beyond = self.beyond.saturating_add(1);
            return false;
        }
        self.had.entry(property.to_owned()).or_default().insert(signature.to_owned())
    }
}

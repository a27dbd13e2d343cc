//! The state of a judge, which a child timeline inherits from its parent.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::excuse::Excuses;
use super::limits::{HITS_MAX, HITS_OF_PROPERTY_MAX};

/// Summary of the earlier events on which judging depends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeState {
    pub(super) excuses: Excuses,
    /// Signatures of reported hits, by property.
    had: BTreeMap<String, BTreeSet<String>>,
    /// Number of hits that were not reported because of a bound.
    beyond: u64,
    /// `sometimes` properties that this path has shown.
    pub(super) seen: BTreeSet<String>,
    /// Calm that has begun; `None` before it, and after the timeline's end.
    pub(super) calm: Option<Calm>,
}

/// Time after all faults have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Calm {
    /// Beginning, in nanoseconds of vtime.
    pub(super) since_ns: u64,
    /// `eventually` properties that have had a matching line.
    pub(super) came: BTreeSet<String>,
}

impl JudgeState {
    /// Returns the names of the `sometimes` properties that this path has shown.
    pub fn seen(&self) -> impl Iterator<Item = &str> {
        self.seen.iter().map(String::as_str)
    }

    /// Returns the number of hits that were not reported because of a bound. A repeated hit is counted each time.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Enters a hit. Returns true if it is to be reported: the signature is new, and the bounds are not reached.
    pub(super) fn enters(&mut self, property: &str, signature: &str) -> bool {
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

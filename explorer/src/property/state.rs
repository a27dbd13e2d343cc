//! State of a judge, which looks for violations of properties. A child timeline inherits the state from its parent.
//!
//! A hit is a violation that the judge found. Hits of a property have the same signature if they differ only in
//! numbers, times, ids and nodes. Each signature is reported once.
//!
//! A `sometimes` property has a pattern that a log line of at least one timeline should match. An `eventually` property
//! has a pattern that a log line must match after all faults have ended.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::excuse::Excuses;
use super::limits::{HITS_MAX, HITS_OF_PROPERTY_MAX};

/// Summary of all earlier events that affect the judge.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeState {
    pub(super) excuses: Excuses,
    /// Signatures of all reported hits, by property.
    had: BTreeMap<String, BTreeSet<String>>,
    /// Number of hits that were not reported because of `HITS_MAX` or `HITS_OF_PROPERTY_MAX`.
    beyond: u64,
    /// Names of the `sometimes` properties whose pattern has matched a line on this path, and of probes that have hit.
    pub(super) seen: BTreeSet<String>,
    /// Calm period, if all faults have ended and the timeline has not.
    pub(super) calm: Option<Calm>,
}

/// Calm period: the time after all faults have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Calm {
    /// Beginning of the period, in nanoseconds of vtime.
    pub(super) since_ns: u64,
    /// Names of the `eventually` properties whose pattern has matched a line in the period.
    pub(super) came: BTreeSet<String>,
}

impl JudgeState {
    /// Returns the names of the `sometimes` properties whose pattern has matched a line on this path, and of probes that
    /// have hit.
    pub fn seen(&self) -> impl Iterator<Item = &str> {
        self.seen.iter().map(String::as_str)
    }

    /// Returns the number of hits that were not reported because the maximum number of hits was reached. If an
    /// unreported hit is repeated, it is counted each time.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Records a hit. Returns true if the caller must report the hit, i.e. its signature is new and the maximum number
    /// of hits is not reached.
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

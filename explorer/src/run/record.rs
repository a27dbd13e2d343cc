//! What a branch came to.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::hit::{Hit, cut};
use super::limits::{HITS_MAX, MARKS_MAX, NAME_BYTES_MAX, SOMETIMES_MAX, TEXT_BYTES_MAX, TRAIL_BYTES_MAX};
use crate::composer::Tally;
use crate::coverage::limits::{DELTA_POINTS_MAX, STATE_BYTES_MAX};
use crate::coverage::{Delta, PointId};
use crate::search::{Choice, Path, Place};

/// What a branch came to. All of it but `executed` and `cpu_ns` is a function of the exploration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Its place in the order of choices, from 0.
    pub choice: u64,
    /// The branch that it goes on from; `None` for the root moment.
    pub from: Option<u64>,
    /// Its path.
    pub path: Path,
    /// The moment at its end, in nanoseconds of vtime, unless no branch can go on from there.
    pub open_ns: Option<u64>,
    /// When it ended, in nanoseconds of vtime.
    pub end_ns: u64,
    /// What it cost, in instructions.
    pub instructions: u64,
    /// How many of them this host executed for it: more if something was run again, fewer if something was there.
    pub executed: u64,
    /// The host's CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// The digest of its trail, in hexadecimal digits.
    pub trail: String,
    /// Digests at the points of its trail and at its ends, by vtime in nanoseconds, cut short: where a replay leaves it.
    pub marks: Vec<(u64, String)>,
    /// Whether there was an epilogue with checks.
    pub checked: bool,
    /// Faults that were done.
    pub faults: u64,
    /// Times that something was lost: frames, unflushed writes.
    pub losses: u64,
    /// Messages between nodes that arrived before its checks, late ones among them. A copy that a fault made is no other message.
    pub messages: u64,
    /// What it reached.
    pub delta: Delta,
    /// What was found, in the order of vtime. Of each signature the first.
    pub hits: Vec<Hit>,
    /// The `sometimes` properties that it saw, in the order of names.
    pub sometimes: Vec<String>,
    /// What became of a test template's commands on it, those that were not started among them. One that it started may end on a
    /// branch that goes on from it.
    pub commands: Tally,
    /// What its operation history has, if it has one.
    pub history: Option<HistoryCount>,
    /// Bytes of its log.
    pub log_bytes: u64,
    /// Whether its log was cut off.
    pub log_cut: bool,
    /// Why it could not be run to its end by this host, if so.
    pub broken: Option<String>,
}

/// An operation history in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryCount {
    /// Operations that were invoked.
    pub operations: u64,
    /// Those that were acknowledged.
    pub acknowledged: u64,
    /// Those that failed.
    pub failed: u64,
    /// Lines that could not be read.
    pub problems: u64,
    /// Keys for which the budget did not suffice: nothing is known of them.
    pub unknown: u64,
}

/// Why a record cannot be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordProblem {
    /// What a branch goes on from was chosen before it.
    #[error("it goes on from choice {0}, which is no earlier one")]
    From(u64),
    /// The path of another place.
    #[error("its path does not fit where it goes on from")]
    Path,
    /// More than a branch reaches.
    #[error("it reached more than {DELTA_POINTS_MAX} points")]
    Points,
    /// A point with a text that none has.
    #[error("a text of point {0} is longer than {STATE_BYTES_MAX} bytes")]
    Text(PointId),
    /// A point under another's id.
    #[error("point {0} is not the one with that id")]
    Id(PointId),
}

impl Record {
    /// Whether a branch is the one that was chosen.
    #[must_use]
    pub fn is_of(&self, choice: &Choice) -> bool {
        let from = match choice.from {
            Place::Root => None,
            Place::After(number) => Some(number),
        };
        (self.choice, self.from, &self.path) == (choice.number, from, &choice.path)
    }

    /// How long it took, in nanoseconds of vtime.
    #[must_use]
    pub fn vtime_ns(&self) -> u64 {
        let begin = self.path.forks().last().map_or(self.end_ns, |fork| fork.vtime_ns);
        self.end_ns.saturating_sub(begin)
    }

    /// Whether its timeline came to the horizon.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.open_ns.is_none() && self.broken.is_none()
    }

    /// Within bounds, and in one form. What is within already stays as it is.
    pub fn bound(&mut self) {
        cut(&mut self.trail, TRAIL_BYTES_MAX);
        self.marks.truncate(MARKS_MAX);
        self.marks.iter_mut().for_each(|(_, digest)| cut(digest, TRAIL_BYTES_MAX));
        self.broken.iter_mut().for_each(|why| cut(why, TEXT_BYTES_MAX));
        self.hits.iter_mut().for_each(Hit::bound);
        let mut seen = BTreeSet::new();
        self.hits.retain(|hit| {
            seen.len() < HITS_MAX && seen.insert((hit.property.clone(), hit.signature.clone()))
        });
        self.sometimes.iter_mut().for_each(|name| cut(name, NAME_BYTES_MAX));
        self.sometimes.sort_unstable();
        self.sometimes.dedup();
        self.sometimes.truncate(SOMETIMES_MAX);
    }

    /// Whether it can be a record.
    ///
    /// # Errors
    /// The first thing that it cannot have.
    pub fn check(&self) -> Result<(), RecordProblem> {
        if let Some(from) = self.from.filter(|from| *from >= self.choice) {
            return Err(RecordProblem::From(from));
        }
        let depth = self.path.forks().len();
        if depth == 0 || (depth == 1) != self.from.is_none() {
            return Err(RecordProblem::Path);
        }
        if self.delta.points().nth(DELTA_POINTS_MAX).is_some() {
            return Err(RecordProblem::Points);
        }
        if let Some((id, _)) = self.delta.points().find(|(_, reached)| !reached.point.is_bounded()) {
            return Err(RecordProblem::Text(id));
        }
        Ok(())
    }
}

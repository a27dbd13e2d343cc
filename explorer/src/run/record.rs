//! The recorded result of a branch.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::final_phase::FinalPhase;
use super::hit::{Hit, cut};
use super::limits::{HITS_MAX, MARKS_MAX, NAME_BYTES_MAX, SOMETIMES_MAX, TEXT_BYTES_MAX, TRAIL_BYTES_MAX};
use crate::composer::Tally;
use crate::coverage::limits::{DELTA_POINTS_MAX, STATE_BYTES_MAX};
use crate::coverage::{Delta, PointId};
use crate::search::{Choice, ForkPoint, Path};

/// Recorded result of a branch. If the same exploration runs the branch again, it gets the same result except for
/// `executed`, `cpu_ns` and the text of `broken`. Some hits (violations of properties) are stored without their
/// evidence. The order in which branches end decides which hits these are: see `Journal::append`. The default is branch
/// 0, which starts at the root moment and reaches no coverage point.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Number of the branch, from 0, in the order in which the explorer chose the branches.
    pub choice: u64,
    /// Number of the branch that this branch extends. `None` if it starts at the root moment.
    pub from: Option<u64>,
    /// Path of the branch.
    pub path: Path,
    /// Vtime of the moment at the branch's end, in nanoseconds. `None` if no other branch can start there.
    pub open_ns: Option<u64>,
    /// Vtime at which the branch ended, in nanoseconds.
    pub end_ns: u64,
    /// Cost of the branch, including its final phase: the time after the branch's end in which the world comes to rest
    /// and the checks run. The unit is instructions or, in other clock modes, conditional branches or exits.
    pub instructions: u64,
    /// Cost of the branch's final phase. `None` if the branch has no final phase, or if the record has an older format
    /// without this field.
    pub final_phase: Option<FinalPhase>,
    /// Number of instructions that the host executed for the branch. It exceeds `instructions` if parts were run again,
    /// and is lower if parts were already stored.
    pub executed: u64,
    /// CPU time that the host spent on the branch, in nanoseconds.
    pub cpu_ns: u64,
    /// Digest of the branch's trail, i.e. of the list of state digests at fixed vtimes, in hexadecimal digits.
    pub trail: String,
    /// Shortened digests at points along the trail and at its ends, by vtime in nanoseconds. They show where a replay
    /// diverges.
    pub marks: Vec<(u64, String)>,
    /// True if the checks ran after the branch.
    pub checked: bool,
    /// Number of faults that were applied.
    pub faults: u64,
    /// Number of times that a disk lost unflushed writes in a power loss.
    pub losses: u64,
    /// Number of messages between nodes that arrived before the checks, including late ones. Copies that a fault
    /// created are not counted.
    pub messages: u64,
    /// Coverage points that the branch reached.
    pub delta: Delta,
    /// Violations of properties (hits), in the order of vtime. Each hit has a signature, a text that is the same for
    /// all hits of one bug. Of all hits with the same property and signature, only the first is recorded.
    pub hits: Vec<Hit>,
    /// Names of the `sometimes` properties (events that some branch should reach) whose events the branch reached, in
    /// alphabetical order.
    pub sometimes: Vec<String>,
    /// Results of a test template's commands on the branch, including commands that were not started. A command that
    /// starts on this branch may end on a branch that extends it.
    pub commands: Tally,
    /// Counts of the operation history, if the branch has one.
    pub history: Option<HistoryCount>,
    /// Length of the log of the branch, in bytes.
    pub log_bytes: u64,
    /// True if the log was truncated.
    pub log_cut: bool,
    /// Reason why the host could not run the branch to its end. `None` if it could.
    pub broken: Option<String>,
}

/// Counts of an operation history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryCount {
    /// Number of operations that clients invoked.
    pub operations: u64,
    /// Number of operations that were acknowledged.
    pub acknowledged: u64,
    /// Number of operations that failed.
    pub failed: u64,
    /// Number of invalid lines in the history.
    pub problems: u64,
    /// Number of keys (objects that operations read and write) whose check exceeded its budget. For these keys it is
    /// unknown whether the history is correct.
    pub unknown: u64,
}

/// Reason why a record is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordProblem {
    /// The branch extends a branch whose number is not lower than its own.
    #[error("it extends choice {0}, which is not an earlier one")]
    From(u64),
    /// The path has no fork, has one fork although the branch extends another branch, or has several although it starts
    /// at the root moment.
    #[error("its path does not extend the path of the branch before it")]
    Path,
    /// The branch has too many coverage points.
    #[error("it reached more than {DELTA_POINTS_MAX} points")]
    Points,
    /// A point has a text that is too long.
    #[error("a text of point {0} is longer than {STATE_BYTES_MAX} bytes")]
    Text(PointId),
    /// The final phase has more instructions than the whole branch, although the branch's count includes them.
    #[error("its final phase has more instructions than the whole branch")]
    FinalPhase,
    /// A point is stored under another point's id.
    #[error("point {0} is not the one with that id")]
    Id(PointId),
}

impl Record {
    /// True if the record belongs to `choice`, i.e. has the same number, parent and path.
    #[must_use]
    pub fn is_of(&self, choice: &Choice) -> bool {
        let from = match choice.from {
            ForkPoint::Root => None,
            ForkPoint::After(number) => Some(number),
        };
        (self.choice, self.from, &self.path) == (choice.number, from, &choice.path)
    }

    /// Returns the length of the branch, in nanoseconds of vtime.
    #[must_use]
    pub fn vtime_ns(&self) -> u64 {
        let begin = self.path.forks().last().map_or(self.end_ns, |fork| fork.vtime_ns);
        self.end_ns.saturating_sub(begin)
    }

    /// True if the timeline reached the horizon, the vtime beyond which no branch runs.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.open_ns.is_none() && self.broken.is_none()
    }

    /// Cuts the record to its bounds, and brings it into a canonical form. A second call changes nothing.
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

    /// Checks that the record is valid.
    ///
    /// # Errors
    /// Returns the first problem.
    pub fn check(&self) -> Result<(), RecordProblem> {
        if let Some(from) = self.from.filter(|from| *from >= self.choice) {
            return Err(RecordProblem::From(from));
        }
        let depth = self.path.forks().len();
        if depth == 0 || (depth == 1) != self.from.is_none() {
            return Err(RecordProblem::Path);
        }
        if self.final_phase.is_some_and(|last| last.instructions() > self.instructions) {
            return Err(RecordProblem::FinalPhase);
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

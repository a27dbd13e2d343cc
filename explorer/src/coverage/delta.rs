//! Coverage points that one branch reached. A point is e.g. a state, or a fault in a state.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

use super::limits::DELTA_POINTS_MAX;
use super::point::{Point, PointId};

/// Points that a branch reached, each with the vtime at which the branch first reached it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delta {
    points: BTreeMap<PointId, Reached>,
    overflow: u64,
    strange: u64,
}

/// Point that was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reached {
    /// The point itself.
    pub point: Point,
    /// Vtime at which the branch first reached the point, in nanoseconds.
    pub vtime_ns: u64,
}

impl Delta {
    /// Returns the points, sorted by id.
    pub fn points(&self) -> impl Iterator<Item = (PointId, &Reached)> {
        self.points.iter().map(|(id, reached)| (*id, reached))
    }

    /// Returns how often a new point was dropped because [`DELTA_POINTS_MAX`] was reached.
    #[must_use]
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Returns the number of ignored events. An event is ignored if it names a node that the world lacks.
    #[must_use]
    pub fn strange(&self) -> u64 {
        self.strange
    }

    pub(super) fn from_parts(points: BTreeMap<PointId, Reached>, overflow: u64, strange: u64) -> Delta {
        Delta { points, overflow, strange }
    }

    /// Merges the points of two consecutive pieces of one timeline.
    #[must_use]
    pub fn with(mut self, later: Delta) -> Delta {
        for reached in later.points.into_values() {
            self.reach(reached.point, reached.vtime_ns);
        }
        self.overflow = self.overflow.saturating_add(later.overflow);
        self.strange = self.strange.saturating_add(later.strange);
        self
    }

    /// Adds a point. If the point is already known, keeps the earlier vtime.
    pub(super) fn reach(&mut self, point: Point, vtime_ns: u64) {
        let full = self.points.len() >= DELTA_POINTS_MAX;
        match self.points.entry(point.id()) {
            Entry::Occupied(mut entry) => {
                let first = &mut entry.get_mut().vtime_ns;
                *first = (*first).min(vtime_ns);
            }
            Entry::Vacant(_) if full => self.overflow = self.overflow.saturating_add(1),
            Entry::Vacant(entry) => {
                entry.insert(Reached { point, vtime_ns });
            }
        }
    }

    /// Counts an ignored event.
    pub(super) fn ignore(&mut self) {
        self.strange = self.strange.saturating_add(1);
    }
}

/// Collects points by id. If two points have the same id, keeps the later one in the iteration.
impl FromIterator<(PointId, Reached)> for Delta {
    fn from_iter<I: IntoIterator<Item = (PointId, Reached)>>(points: I) -> Delta {
        Delta { points: points.into_iter().collect(), overflow: 0, strange: 0 }
    }
}

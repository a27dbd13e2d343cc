//! What was covered over a whole exploration.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

use super::delta::Delta;
use super::limits::POINTS_MAX;
use super::point::{Kind, Point, PointId};
use super::statistics::{Growth, Incidence};

/// All points that were reached, where first, and how often. Branches are merged in the order of choices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Record", into = "Record")]
pub struct Coverage {
    points: BTreeMap<PointId, Covered>,
    overflow: u64,
    branches: u64,
    last: Option<u64>,
    growth: Growth,
    /// What follows from the points, kept up to date: by kind, in the order of [`Kind::ALL`].
    incidence: BTreeMap<Kind, Incidence>,
}

/// A point that was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Covered {
    /// Which.
    pub point: Point,
    /// Where first.
    pub first: Place,
    /// In how many branches.
    pub hits: u64,
}

/// A place in an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The choice that led to the branch.
    pub choice: u64,
    /// When in it, in nanoseconds of vtime.
    pub vtime_ns: u64,
}

/// What a branch was good for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reward {
    /// The points that it reached as the first, in the order of ids.
    pub new: Vec<PointId>,
    /// How many of each kind.
    pub by_kind: BTreeMap<Kind, u64>,
}

/// A branch that comes too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("choice {choice} cannot be merged after choice {last}")]
pub struct OutOfOrder {
    /// Its choice.
    pub choice: u64,
    /// The last one that was merged.
    pub last: u64,
}

impl Coverage {
    /// Add what a branch reached. What that depends on is the order of choices alone, so it is kept.
    ///
    /// # Errors
    /// A later choice, or the same, was merged before; nothing is added.
    pub fn merge(&mut self, choice: u64, delta: &Delta) -> Result<Reward, OutOfOrder> {
        if let Some(last) = self.last
            && choice <= last
        {
            return Err(OutOfOrder { choice, last });
        }
        self.last = Some(choice);
        self.branches += 1;
        let mut reward = Reward::default();
        for (id, reached) in delta.points() {
            let full = self.points.len() >= POINTS_MAX;
            let kind = reached.point.kind();
            let hits = match self.points.entry(id) {
                Entry::Vacant(_) if full => {
                    self.overflow = self.overflow.saturating_add(1);
                    continue;
                }
                Entry::Vacant(entry) => {
                    let first = Place { choice, vtime_ns: reached.vtime_ns };
                    entry.insert(Covered { point: reached.point.clone(), first, hits: 1 });
                    reward.new.push(id);
                    *reward.by_kind.entry(kind).or_default() += 1;
                    1
                }
                Entry::Occupied(mut entry) => {
                    entry.get_mut().hits += 1;
                    entry.get().hits
                }
            };
            self.incidence.entry(kind).or_default().hit(hits);
        }
        self.growth.add(Kind::ALL.map(|kind| self.incidence(kind).observed));
        Ok(reward)
    }

    /// All points, in the order of ids.
    pub fn points(&self) -> impl Iterator<Item = (PointId, &Covered)> {
        self.points.iter().map(|(id, covered)| (*id, covered))
    }

    /// The point with this id.
    #[must_use]
    pub fn get(&self, id: PointId) -> Option<&Covered> {
        self.points.get(&id)
    }

    /// How many points were reached.
    #[must_use]
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// How many branches were merged.
    #[must_use]
    pub fn branches(&self) -> u64 {
        self.branches
    }

    /// How many times a point was reached that there was no room for. If any, numbers of points are lower bounds.
    #[must_use]
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// How points of a kind are spread over branches.
    #[must_use]
    pub fn incidence(&self, kind: Kind) -> Incidence {
        self.incidence.get(&kind).copied().unwrap_or_default()
    }

    /// How coverage grew.
    #[must_use]
    pub fn growth(&self) -> &Growth {
        &self.growth
    }

    /// A hash of all of it.
    #[must_use]
    pub fn digest(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"everett coverage 1\0");
        let mut number = |number: u64| {
            hasher.update(&number.to_le_bytes());
        };
        number(self.branches);
        number(self.overflow);
        number(u64::from(self.last.is_some()));
        number(self.last.unwrap_or(0));
        number(self.points.len() as u64);
        for (id, covered) in self.points() {
            // The id stands for the point's texts.
            id.0.to_le_bytes().chunks_exact(8).for_each(|half| {
                number(half.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)));
            });
            number(covered.first.choice);
            number(covered.first.vtime_ns);
            number(covered.hits);
        }
        self.growth.numbers().for_each(number);
        hasher.finalize()
    }
}

/// Coverage as it is stored: without what follows from the rest.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    branches: u64,
    last: Option<u64>,
    overflow: u64,
    growth: Growth,
    points: BTreeMap<PointId, Covered>,
}

impl From<Coverage> for Record {
    fn from(coverage: Coverage) -> Record {
        let Coverage { points, overflow, branches, last, growth, .. } = coverage;
        Record { branches, last, overflow, growth, points }
    }
}

/// What is wrong with stored coverage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum BadRecord {
    #[error("at most {POINTS_MAX} points")]
    TooManyPoints,
    #[error("a number of branches does not fit the last choice")]
    Branches,
    #[error("point {0}: is not the one with that id")]
    Id(PointId),
    #[error("point {0}: its hits or first choice are impossible")]
    Hits(PointId),
    #[error("growth: is not that of these points and branches")]
    Growth,
}

impl TryFrom<Record> for Coverage {
    type Error = BadRecord;

    fn try_from(record: Record) -> Result<Coverage, BadRecord> {
        let Record { branches, last, overflow, growth, points } = record;
        if points.len() > POINTS_MAX {
            return Err(BadRecord::TooManyPoints);
        }
        // Choices rise and start at 0 or later, so that there are at most as many branches as the last and one.
        if last.map_or(branches != 0, |last| branches == 0 || branches - 1 > last) {
            return Err(BadRecord::Branches);
        }
        let mut incidence: BTreeMap<Kind, Incidence> = BTreeMap::new();
        for (id, covered) in &points {
            if covered.point.id() != *id {
                return Err(BadRecord::Id(*id));
            }
            let late = last.is_none_or(|last| covered.first.choice > last);
            if late || !(1..=branches).contains(&covered.hits) {
                return Err(BadRecord::Hits(*id));
            }
            incidence.entry(covered.point.kind()).or_default().add(covered.hits);
        }
        let counts = Kind::ALL.map(|kind| incidence.get(&kind).map_or(0, |incidence| incidence.observed));
        if !growth.ends_in(branches, counts) {
            return Err(BadRecord::Growth);
        }
        Ok(Coverage { points, overflow, branches, last, growth, incidence })
    }
}

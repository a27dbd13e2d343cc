//! Coverage of a whole exploration: all points that its branches reached. A point is e.g. a state, or a fault in a
//! state.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::delta::Delta;
use super::dictionary::{Dictionary, Entries, WrongId};
use super::limits::POINTS_MAX;
use super::numbers::{Numbers, Unnumbered};
use super::point::{Kind, Point, PointId};
use super::statistics::{Growth, Incidence};

/// All points that the exploration reached. For each point, contains the branch and the vtime at which it was first
/// reached, and the number of branches that reached it. Branches are merged in the order in which the explorer chose
/// them.
///
/// The time to merge a branch grows with the number of its own points, and does not depend on the number of all points.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    dictionary: Dictionary,
    /// Hits and kind of each point, indexed by the point's number.
    cells: Vec<Cell>,
    /// Place where each point was first reached, indexed by the point's number.
    first: Vec<ReachedAt>,
    /// Reached points that have no number in the dictionary (the table that numbers points).
    unnumbered: BTreeMap<PointId, Covered>,
    /// Number of reached points.
    count: usize,
    overflow: u64,
    branches: u64,
    last: Option<u64>,
    growth: Growth,
    /// For each kind of point, how many points were reached, and how many of them by one or two branches. In the order
    /// of [`Kind::ALL`].
    incidence: [Incidence; Kind::ALL.len()],
    /// Best number that was reported so far for each guidance, as a rank: the higher the rank, the better. A guidance
    /// is a value that programs report to steer the explorer.
    best: BTreeMap<String, i64>,
}

/// Hits and kind of a numbered point. A merge reads and writes the cells of the branch's points.
#[derive(Debug, Clone, Copy)]
struct Cell {
    /// Number of branches that reached the point.
    hits: u64,
    kind: Kind,
}

/// Point that was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    /// The point itself.
    pub point: Arc<Point>,
    /// Place where the point was first reached.
    pub first: ReachedAt,
    /// Number of branches that reached the point.
    pub hits: u64,
}

/// Branch and vtime at which a point was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReachedAt {
    /// Number of the branch, in the order in which the explorer chose the branches.
    pub choice: u64,
    /// Vtime at which the branch first reached the point, in nanoseconds.
    pub vtime_ns: u64,
}

/// Points that a branch added to the coverage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reward {
    /// Ids of the points that no earlier branch reached, in ascending order.
    pub new: Vec<PointId>,
    /// Number of new points of each kind.
    pub by_kind: BTreeMap<Kind, u64>,
}

/// Reason why a branch cannot be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CoverError {
    /// A branch with the same or a higher number was already merged.
    #[error("choice {choice} cannot be merged after choice {last}")]
    OutOfOrder {
        /// Number of the rejected branch.
        choice: u64,
        /// Number of the last merged branch.
        last: u64,
    },
    /// A point has an id that belongs to another point.
    #[error(transparent)]
    Id(#[from] WrongId),
}

/// Point that no earlier branch reached, with its number or without.
enum Candidate<'n> {
    Number(u32),
    Unnumbered(&'n Unnumbered),
}

impl Coverage {
    /// Returns an empty coverage that takes its point numbers from `dictionary`.
    #[must_use]
    pub fn new(dictionary: Dictionary) -> Coverage {
        Coverage { dictionary, ..Coverage::default() }
    }

    /// Returns the dictionary that numbers the points.
    #[must_use]
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// Adds the points that a branch reached. `choice` is the branch's position in the order of choices. Branches must
    /// be merged in this order, because the first branch that reaches a point gets the credit.
    ///
    /// # Errors
    /// Returns an error and adds nothing if the same or a later branch was already merged, or if a point has a wrong
    /// id.
    pub fn merge(&mut self, choice: u64, delta: &Delta) -> Result<Reward, CoverError> {
        self.check(choice)?;
        let numbers = self.dictionary.number(delta)?;
        self.merge_numbers(choice, &numbers)
    }

    /// Adds the points that a branch reached, given by their numbers in this coverage's dictionary.
    ///
    /// # Errors
    /// Returns an error and adds nothing if the same or a later branch was already merged.
    pub fn merge_numbers(&mut self, choice: u64, numbers: &Numbers) -> Result<Reward, CoverError> {
        self.check(choice)?;
        self.last = Some(choice);
        self.branches += 1;
        let dictionary = self.dictionary.clone();
        let entries = dictionary.read();
        let mut new = Vec::new();
        // For each kind, the number of this branch's points that at least three earlier branches reached.
        let mut often = [0; Kind::ALL.len()];
        self.grow(numbers.end(), &entries);
        for (vtime_ns, numbers) in numbers.steps() {
            for &number in numbers {
                let Some(cell) = self.cells.get_mut(number as usize) else { continue };
                let kind = cell.kind as usize;
                match cell.hits {
                    0 => {
                        new.push((Candidate::Number(number), vtime_ns));
                        continue;
                    }
                    1 | 2 => self.incidence[kind].hit(cell.hits + 1),
                    _ => often[kind] += 1,
                }
                cell.hits += 1;
            }
        }
        for (incidence, points) in self.incidence.iter_mut().zip(often) {
            incidence.hit_again(points);
        }
        for unnumbered in numbers.unnumbered() {
            match self.unnumbered.get_mut(&unnumbered.id) {
                Some(covered) => {
                    covered.hits += 1;
                    self.incidence[covered.point.kind() as usize].hit(covered.hits);
                }
                None => new.push((Candidate::Unnumbered(unnumbered), unnumbered.vtime_ns)),
            }
        }
        let reward = self.admit(choice, new, &entries);
        self.growth.add(self.incidence.map(|incidence| incidence.observed));
        Ok(reward)
    }

    /// Adds points that no earlier branch reached, up to a total of [`POINTS_MAX`]. If there are too many, adds those
    /// with the lowest ids. The lowest numbers would differ between runs, because numbers depend on the order in which
    /// results arrived.
    fn admit(&mut self, choice: u64, new: Vec<(Candidate<'_>, u64)>, entries: &Entries) -> Reward {
        let mut reward = Reward::default();
        let with_id = |(candidate, vtime_ns)| {
            let id = match &candidate {
                Candidate::Number(number) => entries.get(*number)?.id,
                Candidate::Unnumbered(unnumbered) => unnumbered.id,
            };
            Some((id, candidate, vtime_ns))
        };
        let mut new: Vec<_> = new.into_iter().filter_map(with_id).collect();
        new.sort_unstable_by_key(|(id, ..)| *id);
        let better = self.better_guidance(new.iter().filter_map(|(_, candidate, _)| match candidate {
            Candidate::Number(number) => entries.get(*number).map(|entry| &*entry.point),
            Candidate::Unnumbered(unnumbered) => Some(&*unnumbered.point),
        }));
        for ((id, candidate, vtime_ns), better) in new.into_iter().zip(better) {
            if !better {
                continue;
            }
            if self.count >= POINTS_MAX {
                self.overflow = self.overflow.saturating_add(1);
                continue;
            }
            let first = ReachedAt { choice, vtime_ns };
            let kind = match candidate {
                Candidate::Number(number) => {
                    let place = number as usize;
                    let Some((cell, place)) = self.cells.get_mut(place).zip(self.first.get_mut(place)) else {
                        continue;
                    };
                    (cell.hits, *place) = (1, first);
                    cell.kind
                }
                Candidate::Unnumbered(Unnumbered { point, .. }) => {
                    self.unnumbered.insert(id, Covered { point: Arc::clone(point), first, hits: 1 });
                    point.kind()
                }
            };
            self.count += 1;
            self.incidence[kind as usize].hit(1);
            reward.new.push(id);
            *reward.by_kind.entry(kind).or_default() += 1;
        }
        reward
    }

    /// Returns, for each point, true if the point is to be added. A number that programs report as guidance is added
    /// only if it beats the numbers of all earlier branches and is the best of its own branch. All other points are
    /// added.
    fn better_guidance<'p>(&mut self, points: impl Iterator<Item = &'p Point>) -> Vec<bool> {
        let ranked: Vec<Option<(&str, i64)>> = points
            .map(|point| match point {
                Point::Guidance { name, rank: Some(rank), .. } => Some((name.as_str(), *rank)),
                _ => None,
            })
            .collect();
        let mut best: BTreeMap<&str, i64> = BTreeMap::new();
        for &(name, rank) in ranked.iter().flatten() {
            let earlier = self.best.get(name).copied();
            if earlier.is_none_or(|earlier| earlier < rank) {
                best.entry(name).and_modify(|best| *best = (*best).max(rank)).or_insert(rank);
            }
        }
        let counts =
            ranked.iter().map(|ranked| ranked.is_none_or(|(name, rank)| best.get(name) == Some(&rank)));
        let counts = counts.collect();
        self.best.extend(best.into_iter().map(|(name, rank)| (name.to_owned(), rank)));
        counts
    }

    /// Extends the tables so that they cover all numbers below `end`.
    fn grow(&mut self, end: u32, entries: &Entries) {
        for number in self.cells.len()..end as usize {
            let entry = u32::try_from(number).ok().and_then(|number| entries.get(number));
            self.cells.push(Cell { hits: 0, kind: entry.map_or(Kind::State, |entry| entry.kind) });
            self.first.push(ReachedAt { choice: 0, vtime_ns: 0 });
        }
    }

    fn check(&self, choice: u64) -> Result<(), CoverError> {
        match self.last {
            Some(last) if choice <= last => Err(CoverError::OutOfOrder { choice, last }),
            _ => Ok(()),
        }
    }

    /// Returns all reached points, sorted by id. Sorts at each call.
    #[must_use]
    pub fn points(&self) -> Vec<(PointId, Covered)> {
        let entries = self.dictionary.read();
        let cells = (0u32..).zip(self.cells.iter().zip(&self.first)).filter(|(_, (cell, _))| cell.hits > 0);
        let numbered = cells.filter_map(|(number, (cell, first))| {
            let entry = entries.get(number)?;
            let (point, first, hits) = (Arc::clone(&entry.point), *first, cell.hits);
            Some((entry.id, Covered { point, first, hits }))
        });
        let unnumbered = self.unnumbered.iter().map(|(id, covered)| (*id, covered.clone()));
        let mut points: Vec<_> = numbered.chain(unnumbered).collect();
        points.sort_unstable_by_key(|(id, _)| *id);
        points
    }

    /// Returns the point with this id, or `None` if no branch reached it.
    #[must_use]
    pub fn get(&self, id: PointId) -> Option<Covered> {
        let entries = self.dictionary.read();
        let numbered = entries.find(id).and_then(|number| {
            let place = number as usize;
            let hits = self.cells.get(place).map(|cell| cell.hits).filter(|hits| *hits > 0)?;
            let point = Arc::clone(&entries.get(number)?.point);
            Some(Covered { point, first: *self.first.get(place)?, hits })
        });
        numbered.or_else(|| self.unnumbered.get(&id).cloned())
    }

    /// Returns the number of reached points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if no point was reached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of merged branches.
    #[must_use]
    pub fn branches(&self) -> u64 {
        self.branches
    }

    /// Returns how often a new point was dropped because [`POINTS_MAX`] was reached. If the result is not 0, all counts
    /// of points are lower bounds.
    #[must_use]
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Returns how the points of a kind are spread over branches.
    #[must_use]
    pub fn incidence(&self, kind: Kind) -> Incidence {
        self.incidence[kind as usize]
    }

    /// Returns the growth of the number of points with the number of branches.
    #[must_use]
    pub fn growth(&self) -> &Growth {
        &self.growth
    }

    /// Returns a hash of the whole coverage. The numbers that the dictionary assigns to points have no influence on it.
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
        number(self.count as u64);
        for (id, covered) in self.points() {
            // The id hashes all texts of the point, so the digest needs only the id.
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

/// Compares the contents. The numbers that dictionaries assign to points have no influence.
impl PartialEq for Coverage {
    fn eq(&self, other: &Coverage) -> bool {
        (self.branches, self.overflow, self.last, &self.growth, self.incidence)
            == (other.branches, other.overflow, other.last, &other.growth, other.incidence)
            && self.points() == other.points()
    }
}

impl Eq for Coverage {}

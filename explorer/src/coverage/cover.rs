//! Coverage of a whole exploration.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::delta::Delta;
use super::dictionary::{Dictionary, Entries, WrongId};
use super::limits::POINTS_MAX;
use super::numbers::{Numbers, Unnumbered};
use super::point::{Kind, Point, PointId};
use super::statistics::{Growth, Incidence};

/// All points that the exploration reached, each with its first place and its number of branches. Branches are merged
/// in the order of choices.
///
/// The time to merge a branch grows with the number of its points, not with the number of all points.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    dictionary: Dictionary,
    /// Point's hits and kind, by the point's number.
    cells: Vec<Cell>,
    /// First place where the point was reached, by its number.
    first: Vec<ReachedAt>,
    /// Points that have no number in the dictionary.
    unnumbered: BTreeMap<PointId, Covered>,
    /// Number of points that were reached.
    count: usize,
    overflow: u64,
    branches: u64,
    last: Option<u64>,
    growth: Growth,
    /// Spread of points over branches for each kind, in the order of [`Kind::ALL`].
    incidence: [Incidence; Kind::ALL.len()],
    /// Rank of the best number of each guidance.
    best: BTreeMap<String, i64>,
}

/// Hits and kind of a point with a number. Each merged branch reads and writes the cells of its points.
#[derive(Debug, Clone, Copy)]
struct Cell {
    /// Number of branches that reached the point; 0 if none did.
    hits: u64,
    kind: Kind,
}

/// A point that was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    /// The point itself.
    pub point: Arc<Point>,
    /// First place where it was reached.
    pub first: ReachedAt,
    /// Number of branches that reached it.
    pub hits: u64,
}

/// A place in an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReachedAt {
    /// The choice that led to the branch.
    pub choice: u64,
    /// Time since the branch's start, in nanoseconds of vtime.
    pub vtime_ns: u64,
}

/// Points that a branch added to the coverage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reward {
    /// Points that no earlier branch reached, in the order of ids.
    pub new: Vec<PointId>,
    /// Number of new points of each kind.
    pub by_kind: BTreeMap<Kind, u64>,
}

/// Reason why a branch cannot be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CoverError {
    /// A branch with the same or a later choice was already merged.
    #[error("choice {choice} cannot be merged after choice {last}")]
    OutOfOrder {
        /// Choice of the rejected branch.
        choice: u64,
        /// Choice of the last branch that was merged.
        last: u64,
    },
    /// A point has an id that belongs to another point.
    #[error(transparent)]
    Id(#[from] WrongId),
}

/// Point that the merged branch may have reached first.
enum Candidate<'n> {
    Number(u32),
    Unnumbered(&'n Unnumbered),
}

impl Coverage {
    /// Returns an empty coverage whose points have the numbers of `dictionary`.
    #[must_use]
    pub fn new(dictionary: Dictionary) -> Coverage {
        Coverage { dictionary, ..Coverage::default() }
    }

    /// Returns the dictionary that numbers the points.
    #[must_use]
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// Adds the points that a branch reached. The result depends on the order of choices alone, so branches must come
    /// in that order.
    ///
    /// # Errors
    /// Returns an error, and adds nothing, if the same or a later choice was already merged, or if a point has a wrong
    /// id.
    pub fn merge(&mut self, choice: u64, delta: &Delta) -> Result<Reward, CoverError> {
        self.check(choice)?;
        let numbers = self.dictionary.number(delta)?;
        self.merge_numbers(choice, &numbers)
    }

    /// Adds the points that a branch reached, given by their numbers in this coverage's dictionary.
    ///
    /// # Errors
    /// Returns an error, and adds nothing, if the same or a later choice was already merged.
    pub fn merge_numbers(&mut self, choice: u64, numbers: &Numbers) -> Result<Reward, CoverError> {
        self.check(choice)?;
        self.last = Some(choice);
        self.branches += 1;
        let dictionary = self.dictionary.clone();
        let entries = dictionary.read();
        let mut new = Vec::new();
        // For each kind, the number of points of this branch that at least three earlier branches reached.
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

    /// Adds points that no earlier branch reached, up to [`POINTS_MAX`] in all. Points with the least ids come first,
    /// whatever their numbers are.
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

    /// Returns for each point whether it counts. A number of guidance counts if it is better than those of all earlier
    /// branches, and the best of its branch. All other points count.
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

    /// Extends the tables to hold all numbers below `end`.
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

    /// Returns all reached points in the order of ids. Each call sorts them.
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

    /// Returns the point with this id, or `None` if it was not reached.
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

    /// Returns the number of points that were reached.
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

    /// Returns the number of times that a new point was dropped because [`POINTS_MAX`] was reached. If it is not 0, all
    /// counts of points are lower bounds.
    #[must_use]
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Returns how the points of a kind are spread over branches.
    #[must_use]
    pub fn incidence(&self, kind: Kind) -> Incidence {
        self.incidence[kind as usize]
    }

    /// Returns the growth of coverage with the number of branches.
    #[must_use]
    pub fn growth(&self) -> &Growth {
        &self.growth
    }

    /// Returns a hash of the whole coverage.
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
            // The id is a hash of the point's texts.
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

/// Compares the contents. The numbers of points in the dictionaries do not matter.
impl PartialEq for Coverage {
    fn eq(&self, other: &Coverage) -> bool {
        (self.branches, self.overflow, self.last, &self.growth, self.incidence)
            == (other.branches, other.overflow, other.last, &other.growth, other.incidence)
            && self.points() == other.points()
    }
}

impl Eq for Coverage {}

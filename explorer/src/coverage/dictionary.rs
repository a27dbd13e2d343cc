//! Points by number: each is told once, and named by its number from then on.
//!
//! Numbers are given in the order in which points are told, which is that of results and not that of choices. So nothing that is
//! compared between explorations may depend on a number: digests are of ids.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::delta::{Delta, Reached};
use super::limits::DICTIONARY_MAX;
use super::numbers::{Numbers, Unnumbered};
use super::point::{Kind, Point, PointId};

/// Points by number, shared by all that name points so.
#[derive(Debug, Clone, Default)]
pub struct Dictionary(Arc<RwLock<Entries>>);

/// A point with a number.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: PointId,
    pub(crate) kind: Kind,
    pub(crate) point: Arc<Point>,
}

/// What a dictionary has.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    entries: Vec<Entry>,
    numbers: BTreeMap<PointId, u32>,
    states: u64,
}

/// A point under another's id: a defect of who made the delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("point {0} is not the one with that id")]
pub struct WrongId(pub PointId);

impl Dictionary {
    /// The numbers of what a branch reached. Points that have none get one, as long as there is room; how many points have one
    /// before is [`Dictionary::len`].
    ///
    /// # Errors
    /// A new point is not the one with its id.
    pub fn number(&self, delta: &Delta) -> Result<Numbers, WrongId> {
        let mut entries = self.write();
        let before = entries.entries.len();
        let numbered = entries.number(delta);
        if numbered.is_err() {
            entries.forget_from(before);
        }
        numbered
    }

    /// The points of numbers, with their texts; `None` if there is a number that no point has.
    #[must_use]
    pub fn delta(&self, numbers: &Numbers) -> Option<Delta> {
        let entries = self.read();
        let mut points = BTreeMap::new();
        for run in numbers.runs() {
            for number in run.numbers() {
                let Entry { id, point, .. } = entries.get(number)?;
                points.insert(*id, Reached { point: Point::clone(point), vtime_ns: run.vtime_ns });
            }
        }
        for Unnumbered { id, point, vtime_ns } in numbers.unnumbered() {
            points.insert(*id, Reached { point: Point::clone(point), vtime_ns: *vtime_ns });
        }
        Some(Delta::from_parts(points, numbers.overflow(), numbers.strange()))
    }

    /// How many points have a number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read().entries.len()
    }

    /// True if no point has a number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many states of the whole world have a number.
    #[must_use]
    pub fn states(&self) -> u64 {
        self.read().states
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Entries> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    /// The point of a number.
    pub(crate) fn get(&self, number: u32) -> Option<&Entry> {
        self.entries.get(number as usize)
    }

    /// The number of a point, if it has one.
    pub(crate) fn find(&self, id: PointId) -> Option<u32> {
        self.numbers.get(&id).copied()
    }

    /// The points from a number on, in the order of numbers.
    pub(crate) fn from(&self, number: usize) -> impl Iterator<Item = &Arc<Point>> {
        self.entries.iter().skip(number).map(|entry| &entry.point)
    }

    /// Give a new point the next number; `None` if it has one, or if there is no room.
    pub(crate) fn add(&mut self, point: Arc<Point>) -> Option<u32> {
        let (id, kind) = (point.id(), point.kind());
        if self.entries.len() >= DICTIONARY_MAX || self.numbers.contains_key(&id) {
            return None;
        }
        let number = u32::try_from(self.entries.len()).ok()?;
        self.states += u64::from(kind == Kind::State);
        self.numbers.insert(id, number);
        self.entries.push(Entry { id, kind, point });
        Some(number)
    }

    /// Take back numbers that were given: what told the points was not written.
    pub(crate) fn forget_from(&mut self, number: usize) {
        for entry in self.entries.drain(number.min(self.entries.len())..) {
            self.numbers.remove(&entry.id);
            self.states -= u64::from(entry.kind == Kind::State);
        }
    }

    fn number(&mut self, delta: &Delta) -> Result<Numbers, WrongId> {
        let mut numbered = Vec::new();
        let (mut fresh, mut unnumbered) = (Vec::new(), Vec::new());
        for (id, reached) in delta.points() {
            match self.find(id) {
                Some(number) => numbered.push((reached.vtime_ns, number)),
                None if reached.point.id() != id => return Err(WrongId(id)),
                None => fresh.push((reached, id)),
            }
        }
        // Points that are reached together, or look alike, get numbers that follow each other: runs of them are long then.
        fresh.sort_unstable_by(|(a, _), (b, _)| (a.vtime_ns, alike(a)).cmp(&(b.vtime_ns, alike(b))));
        for (Reached { point, vtime_ns }, id) in fresh {
            let point = Arc::new(point.clone());
            match self.add(Arc::clone(&point)) {
                Some(number) => numbered.push((*vtime_ns, number)),
                None => unnumbered.push(Unnumbered { id, point, vtime_ns: *vtime_ns }),
            }
        }
        unnumbered.sort_unstable_by_key(|unnumbered| unnumbered.id);
        Ok(Numbers::new(numbered, unnumbered, delta.overflow(), delta.strange()))
    }
}

/// An order in which points that one event reaches are neighbours.
fn alike(reached: &Reached) -> (Option<(&str, bool)>, &Point) {
    let order = match &reached.point {
        Point::Order { then, across, .. } => Some((then.as_str(), *across)),
        _ => None,
    };
    (order, &reached.point)
}

//! Numbers of coverage points, i.e. of the things that a branch can reach, such as states of the world. An exploration
//! writes one record for each branch to a file. The file contains the texts of a point once, and after that only the
//! point's number.
//!
//! Points get their numbers in the order in which results arrive, and this order differs between runs. Digests must be
//! comparable between explorations, so they are computed from the points' ids and never from their numbers.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::delta::{Delta, Reached};
use super::limits::{DICTIONARY_BYTES_MAX, DICTIONARY_MAX};
use super::numbers::{Numbers, Unnumbered};
use super::point::{Kind, Point, PointId};

/// Coverage points by number. All clones share one table.
#[derive(Debug, Clone, Default)]
pub struct Dictionary(Arc<RwLock<Entries>>);

/// Point that has a number.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: PointId,
    pub(crate) kind: Kind,
    pub(crate) point: Arc<Point>,
}

/// Contents of a dictionary.
#[derive(Debug)]
pub(crate) struct Entries {
    entries: Vec<Entry>,
    numbers: BTreeMap<PointId, u32>,
    states: u64,
    /// Number of bytes that are left for the texts of further points.
    bytes_left: usize,
}

impl Default for Entries {
    fn default() -> Entries {
        Entries { entries: Vec::new(), numbers: BTreeMap::new(), states: 0, bytes_left: DICTIONARY_BYTES_MAX }
    }
}

/// Error for a point that is stored under another point's id. Only a defect of Everett causes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("point {0} is not the one with that id")]
pub struct WrongId(pub PointId);

impl Dictionary {
    /// Returns the numbers of the points in `delta`, the points that one branch reached. New points get the next free
    /// numbers while the dictionary has room.
    ///
    /// # Errors
    /// Returns an error and assigns no numbers if a new point in `delta` has another point's id.
    pub fn number(&self, delta: &Delta) -> Result<Numbers, WrongId> {
        let mut entries = self.write();
        let before = entries.entries.len();
        let numbered = entries.number(delta);
        if numbered.is_err() {
            entries.forget_from(before);
        }
        numbered
    }

    /// Returns the points of `numbers`, with their texts. Returns `None` if a number has no point.
    #[must_use]
    pub fn delta(&self, numbers: &Numbers) -> Option<Delta> {
        let entries = self.read();
        let mut points = BTreeMap::new();
        for (vtime_ns, numbers) in numbers.steps() {
            for number in numbers {
                let Entry { id, point, .. } = entries.get(*number)?;
                points.insert(*id, Reached { point: Point::clone(point), vtime_ns });
            }
        }
        for Unnumbered { id, point, vtime_ns } in numbers.unnumbered() {
            points.insert(*id, Reached { point: Point::clone(point), vtime_ns: *vtime_ns });
        }
        Some(Delta::from_parts(points, numbers.overflow(), numbers.strange()))
    }

    /// Returns the number of points in the dictionary.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read().entries.len()
    }

    /// True if no point has a number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of points that are abstract states of the whole world ([`Kind::State`]).
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
    /// Returns the point with this number.
    pub(crate) fn get(&self, number: u32) -> Option<&Entry> {
        self.entries.get(number as usize)
    }

    /// Returns the number of a point, or `None` if it has none.
    pub(crate) fn find(&self, id: PointId) -> Option<u32> {
        self.numbers.get(&id).copied()
    }

    /// Returns the points with this number and higher ones, in the order of numbers.
    pub(crate) fn from(&self, number: usize) -> impl Iterator<Item = &Arc<Point>> {
        self.entries.iter().skip(number).map(|entry| &entry.point)
    }

    /// Assigns the next number to a point. Returns `None` if the point already has a number, or if the dictionary is
    /// full.
    pub(crate) fn add(&mut self, point: Arc<Point>) -> Option<u32> {
        let (id, kind) = (point.id(), point.kind());
        if self.entries.len() >= DICTIONARY_MAX || self.numbers.contains_key(&id) {
            return None;
        }
        self.bytes_left = self.bytes_left.checked_sub(point.bytes())?;
        let number = u32::try_from(self.entries.len()).ok()?;
        self.states += u64::from(kind == Kind::State);
        self.numbers.insert(id, number);
        self.entries.push(Entry { id, kind, point });
        Some(number)
    }

    /// Removes the points with this number and higher ones, after an error: a point had a wrong id, or the points could
    /// not be written to a file.
    pub(crate) fn forget_from(&mut self, number: usize) {
        for entry in self.entries.drain(number.min(self.entries.len())..) {
            self.numbers.remove(&entry.id);
            self.bytes_left += entry.point.bytes();
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
        // Points that are reached together or look alike get consecutive numbers. Packed numbers take less space that
        // way.
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

/// Returns a sort key that puts points of the same event next to each other.
fn alike(reached: &Reached) -> (Option<(&str, bool)>, &Point) {
    let order = match &reached.point {
        Point::Order { then, across, .. } => Some((then.as_str(), *across)),
        _ => None,
    };
    (order, &reached.point)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If a point's texts exceed the remaining room, a shorter point can still be added. The removal of a point frees
    /// the room of its texts.
    #[test]
    fn texts_of_numbered_points_are_bounded() {
        let point = |text: &str| Arc::new(Point::Fault { fault: text.to_owned(), phase: "phase".to_owned() });
        let mut entries = Entries { bytes_left: 20, ..Entries::default() };
        assert_eq!(entries.add(point("first")), Some(0));
        assert_eq!(entries.add(point("second")), None, "it has 11 bytes, and there is room for 10");
        assert_eq!(entries.add(point("third")), Some(1));
        assert_eq!((entries.bytes_left, entries.add(point(""))), (0, None));
        entries.forget_from(1);
        assert_eq!((entries.bytes_left, entries.add(point("other"))), (10, Some(1)));
    }
}

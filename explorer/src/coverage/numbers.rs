//! Coverage of one branch, with points named by their numbers in a [`Dictionary`](super::Dictionary).
//!
//! Most branches reach points that other branches reached, in runs of consecutive numbers. Packed, a thousand points
//! take less than a kilobyte.

use std::sync::Arc;

use super::limits::DELTA_POINTS_MAX;
use super::point::{Point, PointId};

/// Points that one branch reached, by number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Numbers {
    /// Points with numbers, in the order of vtime and then of numbers.
    runs: Vec<Run>,
    /// Points without numbers, in the order of ids.
    unnumbered: Vec<Unnumbered>,
    overflow: u64,
    strange: u64,
}

/// Points with consecutive numbers that were first reached at one vtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Time of the first visit, in nanoseconds of vtime.
    pub(crate) vtime_ns: u64,
    first: u32,
    /// Number of points; at least one.
    count: u32,
}

/// A point for which the dictionary had no room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unnumbered {
    pub(crate) id: PointId,
    pub(crate) point: Arc<Point>,
    pub(crate) vtime_ns: u64,
}

/// Error for packed numbers that are malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has points that no earlier record introduced")]
pub struct BadNumbers;

impl Run {
    /// Returns the numbers of the run.
    pub(crate) fn numbers(self) -> std::ops::Range<u32> {
        self.first..self.first + self.count
    }
}

impl Numbers {
    pub(super) fn new(
        mut reached: Vec<(u64, u32)>,
        unnumbered: Vec<Unnumbered>,
        overflow: u64,
        strange: u64,
    ) -> Numbers {
        reached.sort_unstable();
        let mut runs: Vec<Run> = Vec::new();
        for (vtime_ns, number) in reached {
            match runs.last_mut() {
                Some(run) if run.vtime_ns == vtime_ns && run.first + run.count == number => run.count += 1,
                _ => runs.push(Run { vtime_ns, first: number, count: 1 }),
            }
        }
        Numbers { runs, unnumbered, overflow, strange }
    }

    #[cfg(test)]
    pub(crate) fn of_unnumbered(point: Point) -> Numbers {
        let point = Unnumbered { id: point.id(), point: Arc::new(point), vtime_ns: 1 };
        Numbers::new(Vec::new(), vec![point], 0, 0)
    }

    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    pub(crate) fn unnumbered(&self) -> &[Unnumbered] {
        &self.unnumbered
    }

    /// Returns the number of times that the branch reached a point that was dropped because the delta was full.
    #[must_use]
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Returns the number of events that named a node that the world does not have.
    #[must_use]
    pub fn strange(&self) -> u64 {
        self.strange
    }

    /// Returns the number of points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.count as usize).sum::<usize>() + self.unnumbered.len()
    }

    /// True if no point was reached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.unnumbered.is_empty()
    }

    /// Packs the runs as integers of variable length. Each vtime is written as its difference from the previous one,
    /// followed by the number of its runs. Each run is written as the gap before it and its length minus one. Both
    /// share one integer if the run is short.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut packed = Vec::with_capacity(self.runs.len() * 2);
        let mut before_ns = 0;
        for step in self.runs.chunk_by(|a, b| a.vtime_ns == b.vtime_ns) {
            let vtime_ns = step.first().map_or(0, |run| run.vtime_ns);
            put(&mut packed, vtime_ns - before_ns);
            put(&mut packed, step.len() as u64);
            before_ns = vtime_ns;
            let mut end = 0;
            for run in step {
                let (gap, more) = (u64::from(run.first - end), u64::from(run.count - 1));
                put(&mut packed, gap << MORE_BITS | more.min(MORE_MAX));
                if more >= MORE_MAX {
                    put(&mut packed, more - MORE_MAX);
                }
                end = run.first + run.count;
            }
        }
        packed
    }

    /// Unpacks the bytes that [`Numbers::pack`] returns. All numbers must be below `known`, the number of points in the
    /// dictionary.
    ///
    /// # Errors
    /// Returns an error if `packed` is malformed, if it has more than [`DELTA_POINTS_MAX`] points, or if a number is
    /// not below `known`.
    pub(crate) fn unpack(
        packed: &[u8],
        known: usize,
        unnumbered: Vec<Unnumbered>,
        overflow: u64,
        strange: u64,
    ) -> Result<Numbers, BadNumbers> {
        // A run takes at least a byte and has at least one point.
        let mut runs = Vec::with_capacity((packed.len() / 2).min(DELTA_POINTS_MAX));
        let (mut rest, mut vtime_ns, mut points) = (packed, 0u64, unnumbered.len() as u64);
        while !rest.is_empty() {
            vtime_ns = vtime_ns.checked_add(take(&mut rest)?).ok_or(BadNumbers)?;
            let mut end = 0u64;
            for _ in 0..take(&mut rest)? {
                let code = take(&mut rest)?;
                let more = match code & MORE_MAX {
                    MORE_MAX => take(&mut rest)?.checked_add(MORE_MAX).ok_or(BadNumbers)?,
                    more => more,
                };
                let first = end.checked_add(code >> MORE_BITS).ok_or(BadNumbers)?;
                end = more.checked_add(1).and_then(|count| first.checked_add(count)).ok_or(BadNumbers)?;
                points = points.saturating_add(end - first);
                if end > known as u64 || points > DELTA_POINTS_MAX as u64 {
                    return Err(BadNumbers);
                }
                let number = |n: u64| u32::try_from(n).map_err(|_| BadNumbers);
                runs.push(Run { vtime_ns, first: number(first)?, count: number(end - first)? });
            }
        }
        Ok(Numbers { runs, unnumbered, overflow, strange })
    }
}

/// Number of low bits of a run's first integer that hold the run's length minus one. If all are set, the rest of the
/// length follows as an integer of its own.
const MORE_BITS: u32 = 2;
/// Value of these bits if all are set.
const MORE_MAX: u64 = (1 << MORE_BITS) - 1;

/// Appends a number, seven bits to a byte, the least significant first. All bytes except the last have the highest bit
/// set.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number that [`put`] wrote.
fn take(bytes: &mut &[u8]) -> Result<u64, BadNumbers> {
    // Nearly all numbers have one byte.
    if let [byte @ ..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return Ok(u64::from(*byte));
    }
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(BadNumbers)?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return Err(BadNumbers);
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(BadNumbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vtime without runs takes two bytes, and no memory.
    #[test]
    fn memory_is_reserved_for_points_and_not_for_bytes() {
        let numbers = Numbers::unpack(&vec![0; 1 << 20], 0, Vec::new(), 0, 0).unwrap();
        assert!(numbers.is_empty() && numbers.runs.capacity() <= DELTA_POINTS_MAX);
    }
}

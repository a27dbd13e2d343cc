//! Coverage points of one branch (e.g. states that it reached), by the numbers that a
//! [`Dictionary`](super::Dictionary) gives them.
//!
//! Most points of a branch were reached by earlier branches, and their numbers form runs of consecutive numbers. A
//! thousand points therefore take less than a kilobyte when packed.

use std::sync::Arc;

use super::limits::DELTA_POINTS_MAX;
use super::point::{Point, PointId};

/// Points that one branch reached, by number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Numbers {
    /// Numbers of points, sorted by vtime and then by number.
    numbers: Vec<u32>,
    /// One step for each vtime at which points were first reached.
    steps: Vec<Step>,
    /// Points without a number, sorted by id.
    unnumbered: Vec<Unnumbered>,
    overflow: u64,
    strange: u64,
}

/// Points that were first reached at one vtime. In `numbers`, they follow the points of the previous step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    /// Vtime at which the points were first reached, in nanoseconds.
    vtime_ns: u64,
    /// Index in `numbers` just after the step's last point.
    end: usize,
}

/// Point for which the dictionary had no room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unnumbered {
    pub(crate) id: PointId,
    pub(crate) point: Arc<Point>,
    pub(crate) vtime_ns: u64,
}

/// Error for malformed packed numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has points that no earlier record introduced")]
pub struct BadNumbers;

impl Numbers {
    pub(super) fn new(
        mut reached: Vec<(u64, u32)>,
        unnumbered: Vec<Unnumbered>,
        overflow: u64,
        strange: u64,
    ) -> Numbers {
        reached.sort_unstable();
        let mut steps = Vec::new();
        for step in reached.chunk_by(|a, b| a.0 == b.0) {
            let end = steps.last().map_or(0, |step: &Step| step.end) + step.len();
            steps.extend(step.first().map(|(vtime_ns, _)| Step { vtime_ns: *vtime_ns, end }));
        }
        let numbers = reached.into_iter().map(|(_, number)| number).collect();
        Numbers { numbers, steps, unnumbered, overflow, strange }
    }

    #[cfg(test)]
    pub(crate) fn of_unnumbered(point: Point) -> Numbers {
        let point = Unnumbered { id: point.id(), point: Arc::new(point), vtime_ns: 1 };
        Numbers::new(Vec::new(), vec![point], 0, 0)
    }

    /// Returns each vtime at which points were first reached, in nanoseconds, with the points' numbers.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (u64, &[u32])> {
        let mut begin = 0;
        self.steps.iter().map(move |Step { vtime_ns, end }| {
            let numbers = self.numbers.get(std::mem::replace(&mut begin, *end)..*end);
            (*vtime_ns, numbers.unwrap_or_default())
        })
    }

    /// Returns one more than the largest number, or 0 without numbers.
    pub(crate) fn end(&self) -> u32 {
        self.numbers.iter().max().map_or(0, |number| number + 1)
    }

    pub(crate) fn unnumbered(&self) -> &[Unnumbered] {
        &self.unnumbered
    }

    /// Returns how often a new point was dropped because the branch had already reached [`DELTA_POINTS_MAX`] points.
    #[must_use]
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Returns the number of events that named a node that the world lacks.
    #[must_use]
    pub fn strange(&self) -> u64 {
        self.strange
    }

    /// Returns the number of points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len() + self.unnumbered.len()
    }

    /// True if no point was reached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.unnumbered.is_empty()
    }

    /// Packs runs of consecutive numbers as integers of variable length.
    ///
    /// Each vtime is written as its difference from the previous vtime, followed by the number of its runs. Each run is
    /// written as the gap before it and its length minus one. If the run is short, one integer has both the gap and the
    /// length.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut packed = Vec::with_capacity(self.numbers.len() * 2);
        let mut before_ns = 0;
        for (vtime_ns, numbers) in self.steps() {
            let runs = || numbers.chunk_by(|a, b| a + 1 == *b);
            put(&mut packed, vtime_ns - before_ns);
            put(&mut packed, runs().count() as u64);
            before_ns = vtime_ns;
            let mut end = 0;
            for run in runs() {
                let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
                let (gap, more) = (u64::from(first - end), u64::from(last - first));
                put(&mut packed, gap << MORE_BITS | more.min(MORE_MAX));
                if more >= MORE_MAX {
                    put(&mut packed, more - MORE_MAX);
                }
                end = last + 1;
            }
        }
        packed
    }

    /// Unpacks the bytes that [`Numbers::pack`] returns. `known` is the number of points in the dictionary, and all
    /// numbers must be below it.
    ///
    /// # Errors
    /// Returns an error if `packed` is malformed, has more than [`DELTA_POINTS_MAX`] points, or has a number that is
    /// not below `known`.
    pub(crate) fn unpack(
        packed: &[u8],
        known: usize,
        unnumbered: Vec<Unnumbered>,
        overflow: u64,
        strange: u64,
    ) -> Result<Numbers, BadNumbers> {
        // Guess two points for each packed byte. The vector grows if there are more.
        let mut numbers = Vec::with_capacity((2 * packed.len()).min(DELTA_POINTS_MAX));
        let mut steps = Vec::new();
        let (mut rest, mut vtime_ns, room) =
            (packed, 0u64, DELTA_POINTS_MAX.saturating_sub(unnumbered.len()));
        let known = u32::try_from(known).unwrap_or(u32::MAX);
        while !rest.is_empty() {
            vtime_ns = vtime_ns.checked_add(take(&mut rest)?).ok_or(BadNumbers)?;
            let mut end = 0;
            for _ in 0..take(&mut rest)? {
                let (gap, more) = run(&mut rest)?;
                let first = u32::try_from(gap).ok().and_then(|gap| gap.checked_add(end)).ok_or(BadNumbers)?;
                let last =
                    u32::try_from(more).ok().and_then(|more| first.checked_add(more)).ok_or(BadNumbers)?;
                if last >= known || last - first >= DELTA_POINTS_MAX as u32 {
                    return Err(BadNumbers);
                }
                end = last + 1;
                numbers.extend(first..end);
                if numbers.len() > room {
                    return Err(BadNumbers);
                }
            }
            if steps.last().map_or(0, |step: &Step| step.end) < numbers.len() {
                steps.push(Step { vtime_ns, end: numbers.len() });
            }
        }
        Ok(Numbers { numbers, steps, unnumbered, overflow, strange })
    }
}

/// Number of low bits in a run's first integer that hold the run's length minus one. If all these bits are set, another
/// integer follows with the remaining length.
const MORE_BITS: u32 = 2;
/// Value of the low bits if all of them are set.
const MORE_MAX: u64 = (1 << MORE_BITS) - 1;

/// Appends a number with seven bits in each byte, the least significant bits first. All bytes except the last have the
/// highest bit set.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads the gap before a run, and the run's length minus one.
#[inline]
fn run(bytes: &mut &[u8]) -> Result<(u64, u64), BadNumbers> {
    let code = take(bytes)?;
    let more = match code & MORE_MAX {
        MORE_MAX => take(bytes)?.checked_add(MORE_MAX).ok_or(BadNumbers)?,
        more => more,
    };
    Ok((code >> MORE_BITS, more))
}

/// Reads a number that [`put`] wrote.
#[inline]
fn take(bytes: &mut &[u8]) -> Result<u64, BadNumbers> {
    // Nearly all numbers have one or two bytes, and the length is hard to predict. The code avoids a branch on it.
    if let [low, high, ..] = *bytes
        && (low & high) < 0x80
    {
        let two = u64::from(low >> 7);
        *bytes = bytes.get(1 + two as usize..).unwrap_or_default();
        return Ok(u64::from(low & 0x7f) | (two * u64::from(*high)) << 7);
    }
    take_long(bytes)
}

fn take_long(bytes: &mut &[u8]) -> Result<u64, BadNumbers> {
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

    /// Two packed bytes can encode a vtime without points. Unpacking many of these vtimes must not reserve memory in
    /// proportion to the bytes.
    #[test]
    fn memory_is_reserved_for_points_and_not_for_bytes() {
        let numbers = Numbers::unpack(&vec![0; 1 << 20], 0, Vec::new(), 0, 0).unwrap();
        assert!(
            numbers.is_empty()
                && numbers.numbers.capacity() <= DELTA_POINTS_MAX
                && numbers.steps.capacity() == 0
        );
    }
}
